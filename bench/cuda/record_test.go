package cuda

import (
	"encoding/json"
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

// part is one of record.py's, of which there are twenty.
type part struct {
	What     string
	Commands []string
	Needs    string
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

func TestRecord_HasEveryPart(t *testing.T) {
	found := parts(t)
	for i := range 20 {
		name := fmt.Sprintf("H%d", i+1)
		p, ok := found[name]
		switch {
		case !ok || p.What == "":
			t.Errorf("there is no part %s", name)
		case len(p.Commands) == 0 && p.Needs == "":
			t.Errorf("%s has neither commands nor what it needs", name)
		}
	}
	if len(found) != 20 {
		t.Errorf("%d parts, want 20", len(found))
	}
}

// Commands name files, tests and benchmarks that are there, and trainings whose pipelines are in order.
func TestRecord_CommandsNameWhatThereIs(t *testing.T) {
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
			for _, m := range regexp.MustCompile(`bin/(\w+)\.test .*-test\.(run|bench) '?([^' ]+)`).FindAllStringSubmatch(c, -1) {
				if !declares(t, m[1], m[2], m[3]) {
					t.Errorf("%s: %s has no test or benchmark %s", name, m[1], m[3])
				}
			}
			trains(t, name, c)
		}
	}
}

// declares tells whether a package of tests has a function that a pattern picks.
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
	picked, prefix := regexp.MustCompile(pattern), map[string]string{"run": "Test", "bench": "Benchmark"}[kind]
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
		if g, problems := graph.Parse(m[1], src, graph.ParseOptions{Parts: graphtest.Standard(), Sets: sets}); g == nil {
			t.Errorf("%s: %s: %v", name, command, problems)
		}
	}
}
