package cuda

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

const root = "../.."

// part is one of record.py's.
type part struct {
	What     string
	Commands []string
	First    bool // done without being named
}

func parts(t *testing.T) map[string]part {
	t.Helper()
	testkit.Needs(t, "python3")
	out, err := exec.Command("python3", "record.py", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	var found map[string]part
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// Six parts, of 90 s each at most, fit a machine that is lent for minutes.
func TestRecord_HasEveryPart(t *testing.T) {
	found := parts(t)
	for i := range len(found) {
		name := fmt.Sprintf("H%d", i+1)
		p := found[name]
		if p.What == "" || len(p.Commands) == 0 || p.First != (i < 6) {
			t.Errorf("%s is %+v", name, p)
		}
	}
}

// packed lays out a folder as the archive of make cuda-record does in a copy of the repository, with programs over the driver in Go.
func packed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range strings.Split(strings.TrimSpace(output(t, root, "git", "ls-files", "gpu/cuda", "bench", "pipeline.toml")), "\n") {
		to := filepath.Join(dir, file)
		from, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Symlink(from, to)); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin")
	output(t, root, "go", "build", "-tags", "fakecuda", "-o", bin+"/", "./cmd/rlhost", "./cmd/rlhost-cuda")
	for name, folder := range map[string]string{"cuda": "./gpu/cuda", "kernels": "./gpu/cuda/kernels", "driver": "./gpu/cuda/driver"} {
		output(t, root, "go", "test", "-c", "-o", filepath.Join(bin, name+".test"), folder)
	}
	if err := os.WriteFile(filepath.Join(bin, "commit"), []byte("0123abcd\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// output is the output of a command.
func output(t *testing.T, dir string, command ...string) string {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return string(out)
}

// Everything that is recorded without being named runs over the driver in Go and passes, except parts that the machine lacks.
func TestRecord_RunsOverTheDriverInGo(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("takes minutes: make test-cuda")
	}
	dir := packed(t)
	_, data := recorded(t, dir, []string{"RLHOST_CUDA_DRIVER=fake", "RLHOST_CUDA_SECONDS=400", "RLHOST_LONG="})
	r, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if r.Commit != "0123abcd" || len(r.Parts) != 6 {
		t.Errorf("commit %q, %d parts", r.Commit, len(r.Parts))
	}
	for name, p := range r.Parts {
		for _, run := range p.Runs {
			if run.Outcome != "passed" && !strings.Contains(run.Command, "nvidia-smi") && !strings.Contains(run.Command, "peer_") || run.Outcome == "failed" {
				t.Errorf("%s: %s: %s %s\n%s", name, run.Command, run.Outcome, run.Why, run.End)
			}
		}
	}
}

// A step that takes longer than its part is killed with all its processes, its output is kept, and the next steps are done and recorded;
// everything recorded by then is on the disk.
func TestRecord_KillsAHangingStepAndContinues(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	hangs := "echo '--- PASS: TestFirst (0.00s)'\nsleep 600 &\necho $! >" + pids + "\ncp $RLHOST_CUDA_RESULTS/*.json " + pids + ".json\nwait"
	_, data := written(t, map[string]string{"bin/rlhost-cuda": "echo found", "bin/driver.test": hangs, "bin/kernels.test": "echo", "bin/rlhost": "echo '{\"reason\": \"return\"}'"},
		[]string{"RLHOST_CUDA_SECONDS=2"}, "H1", "H2", "H3")
	r, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	h2 := r.Parts["H2"]
	if first := h2.Runs[0]; h2.Outcome != "failed" || first.Code != 124 || first.Tests["TestFirst"] != "passed" || !strings.Contains(first.Why, "longer than 2 s") {
		t.Errorf("what hangs is recorded as %+v", first)
	}
	if second := h2.Runs[1]; second.Outcome != "skipped" || !strings.Contains(second.Why, "time was used up") {
		t.Errorf("what comes after it in its part is recorded as %+v", second)
	}
	if got := r.Parts["H3"].Outcome; got != "passed" {
		t.Errorf("the next part is %s", got)
	}
	before, err := os.ReadFile(pids + ".json")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := parse(before); err != nil || len(r.Parts) != 1 || r.Parts["H1"].What == "" {
		t.Errorf("while H2 hangs the record has %+v: %v", r, err)
	}
	pid, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "what it started has ended", func() bool {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		return err != nil || strings.Contains(string(stat), ") Z ")
	})
}

// Commands name files, tests and benchmarks that are there, and trainings whose pipelines are in order.
func TestRecord_CommandsExist(t *testing.T) {
	for name, p := range parts(t) {
		for _, c := range p.Commands {
			if out, err := exec.Command("sh", "-n", "-c", c).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %s", name, c, out)
			}
			for _, file := range regexp.MustCompile(`bench/\S+|\w+\.toml`).FindAllString(c, -1) {
				if _, err := os.Stat(filepath.Join(root, file)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, m := range regexp.MustCompile(`bin/(\w+)\.test .*-test\.(run|skip|bench) '?([^' ]+)`).FindAllStringSubmatch(c, -1) {
				if !declares(t, m[1], m[2], m[3]) {
					t.Errorf("%s: %s has no test or benchmark %s", name, m[1], m[3])
				}
			}
			trains(t, name, c)
		}
	}
}

// declares reports whether a package of tests has a function that a pattern picks.
func declares(t *testing.T, binary, kind, pattern string) bool {
	t.Helper()
	folder, ok := map[string]string{"cuda": "gpu/cuda", "kernels": "gpu/cuda/kernels", "driver": "gpu/cuda/driver", "rlhost": "cmd/rlhost"}[binary]
	if !ok {
		return false
	}
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	pattern, _, _ = strings.Cut(pattern, "/")
	picked, prefix := regexp.MustCompile(pattern), map[string]string{"run": "Test", "skip": "Test", "bench": "Benchmark"}[kind]
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (\w+)\(`).FindAllSubmatch(text, -1) {
			if f := string(m[1]); strings.HasPrefix(f, prefix) && picked.MatchString(f) {
				return true
			}
		}
	}
	return false
}

// trains checks the pipelines that a command trains.
func trains(t *testing.T, name, command string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`train (\S+)([^;]*)`).FindAllStringSubmatch(command, -1) {
		src, err := os.ReadFile(filepath.Join(root, m[1]))
		if err != nil {
			t.Fatal(err)
		}
		sets := []string{}
		for _, set := range regexp.MustCompile(`--set (\S+)`).FindAllStringSubmatch(m[2], -1) {
			sets = append(sets, strings.ReplaceAll(set[1], "'", ""))
		}
		sets = append(sets, "policy.main.backend=cpu") // the kinds of graphtest have no other
		if g, problems := graphtest.Parse(m[1], src, graph.ParseOptions{Parts: graphtest.Standard(), Sets: sets}); g == nil {
			t.Errorf("%s: %s: %v", name, command, problems)
		}
	}
}
