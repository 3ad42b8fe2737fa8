package plugins_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The examples' own unit tests in C.
func TestUnits_OfExamplesInCPass(t *testing.T) {
	for _, env := range []string{"cartpole", "chase"} {
		t.Run(env, func(t *testing.T) {
			t.Parallel()
			program := filepath.Join(t.TempDir(), env)
			compileNative(t, env+"-c/"+env+"_test.c", program)
			if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != "5 tests, 0 failures\n" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestUnits_FailuresNameTheirLine(t *testing.T) {
	program := filepath.Join(t.TempDir(), "fails")
	compileNative(t, "testdata/fails_test.c", program)
	for name, want := range map[string]string{
		"right": "1 tests, 0 failures\n",
		"wrong_number": "testdata/fails_test.c:9: wrong_number: rl_test_reward(0) is 0, want 5\n" +
			"testdata/fails_test.c:10: wrong_number: expected 1 > 2\n1 tests, 2 failures\n",
		"wrong_name":   "testdata/fails_test.c:18: wrong_name: no observation \"prey\"; there is \"\"\n",
		"wrong_agent":  "testdata/fails_test.c:24: wrong_agent: observation \"\" has 4 rows of 4 elements: there is no element 0 of agent 4\n",
		"wrong_action": "testdata/fails_test.c:30: wrong_action: rl_test_step has 1 values, and an action of all agents 4 elements\n",
		"outside":      "testdata/fails_test.c:36: outside: rl_step: status -7 an action is outside its space\n",
		"early":        "testdata/fails_test.c:39: early: rl_step: status -3 reset first\n",
		"refused":      "testdata/fails_test.c:41: refused: rl_create: status -5 size must be 3 to 99\n",
		"nobody":       "no test of that name\n",
	} {
		out, err := exec.Command(program, name).Output()
		if got := string(out); got != want || (err == nil) != strings.HasSuffix(want, " 0 failures\n") {
			t.Errorf("%s: %v\n%swant\n%s", name, err, got, want)
		}
	}
}
