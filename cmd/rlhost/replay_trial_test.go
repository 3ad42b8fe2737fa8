package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// The episode with which a new version fails, in its trial or on its probation, is played again by the number of the change, up to the step
// that fails, with the module as it was tried.
func TestReplay_PlaysTheEpisodeThatANewVersionFailedWith(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	w.write("walk.toml", strings.Replace(jobOf("walk", "walk.wasm"), "name = ", "record = \"16MiB\"\nname = ", 1))
	j := w.host("walk.toml")
	want := map[uint64]string{}
	for _, c := range moduleFaults[:6] {
		q := w.reloadWith("walk.toml", append([]string{"env.walk.args={" + c.args + "}"}, c.sets...)...)
		var refused *control.Error
		err := j.client.Do(t.Context(), control.VerbReload, q, nil, nil)
		if c.code != "" && (!errors.As(err, &refused) || refused.Code != c.code) || c.code == "" && err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		j.quiet()
		j.goesOn()
		list := j.changes()
		number := list[len(list)-1].Number
		if c.code == "" { // the fallback is a change of its own
			j.wrote("rolled_back", "fallback", c.reason)
			for _, x := range list {
				if x.Step == "committed" {
					number = x.Number
				}
			}
		} else if told := fmt.Sprintf("rlhost replay job/1 --trial %d plays", number); !strings.Contains(strings.ReplaceAll(refused.Help, "/0001", "/1"), told) {
			t.Errorf("%s: the help is %q", c.what, refused.Help)
		}
		kind := map[byte]string{'1': "trap", '2': "deadline", '4': "NaN"}[c.args[len("fault=")]]
		want[number] = kind
	}
	j.stop()
	for number, kind := range want {
		out, err := exec.CommandContext(t.Context(), w.program, "replay", j.dir, "--trial", fmt.Sprint(number), "--trace").CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		last := lines[len(lines)-1]
		if err != nil || len(lines) < 2 || !strings.HasSuffix(lines[len(lines)-2], "  fails") || !strings.HasPrefix(lines[0], "step 0  ") ||
			!regexp.MustCompile(`^failed after \d+ env steps, return .*, as in the run: .*`+kind).MatchString(last) {
			t.Errorf("change %d, %s: %v\n%s", number, kind, err, out)
		}
		again, err := exec.CommandContext(t.Context(), w.program, "replay", j.dir, "--trial", fmt.Sprint(number), "--trace").CombinedOutput()
		if err != nil || !bytes.Equal(again, out) {
			t.Errorf("change %d: the second time %v\n%s", number, err, again)
		}
	}
	out, err := exec.CommandContext(t.Context(), w.program, "replay", j.dir, "--trial", "999").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "error[E162]") || !strings.Contains(string(out), "no failure of change 999 is recorded") {
		t.Errorf("%v\n%s", err, out)
	}
}
