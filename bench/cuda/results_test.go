package cuda

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/gpu/cuda/kernels"
	"github.com/rlhost/rlhost/internal/testkit"
)

// record is the output of record.py.
type record struct {
	Kernels map[string]string `json:"kernels"` // hashes of sources by module
	Commit  string            `json:"commit"`
	Date    time.Time         `json:"date"`
	Device  string            `json:"device"`
	Driver  string            `json:"driver"`
	CPU     string            `json:"cpu"`
	Parts   map[string]result `json:"parts"`
}

// result is that of a part.
type result struct {
	What    string `json:"what"`
	Bar     string `json:"bar"`
	Outcome string `json:"outcome"`
	Runs    []ran  `json:"runs"`
}

// ran is a command.
type ran struct {
	Command string                        `json:"command"`
	Outcome string                        `json:"outcome"`
	Why     string                        `json:"why"`
	Code    int                           `json:"code"`
	Seconds float64                       `json:"seconds"`
	Figures map[string]map[string]float64 `json:"figures"`
	Tests   map[string]string             `json:"tests"`
	Last    json.RawMessage               `json:"last"`
	End     string                        `json:"end"`
}

// parse reads a record, strictly: no field more and none less.
func parse(data []byte) (*record, error) {
	r := &record{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(r); err != nil {
		return nil, err
	}
	if r.Device == "" || r.CPU == "" || r.Date.IsZero() || len(r.Kernels) == 0 || len(r.Parts) == 0 {
		return nil, fmt.Errorf("device %q, processors %q, date %v, %d kernels, %d parts", r.Device, r.CPU, r.Date, len(r.Kernels), len(r.Parts))
	}
	for name, p := range r.Parts {
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return r, nil
}

var outcomes = []string{"failed", "skipped", "passed"} // the worst first

// check holds that a part's outcome is that of its runs, and that runs of tests have their names.
func (p *result) check() error {
	if len(p.Runs) == 0 {
		return fmt.Errorf("no runs and outcome %q", p.Outcome)
	}
	worst := len(outcomes)
	for _, r := range p.Runs {
		worst = min(worst, slices.Index(outcomes, r.Outcome))
		if r.Outcome == "passed" && strings.Contains(r.Command, "-test.v") && len(r.Tests) == 0 {
			return fmt.Errorf("%s: no tests", r.Command)
		}
		for name, outcome := range r.Tests {
			if !slices.Contains(outcomes, outcome) || outcome == "failed" && r.Outcome == "passed" {
				return fmt.Errorf("%s: %s has %s", r.Command, name, outcome)
			}
		}
	}
	if worst < 0 || p.What == "" || p.Outcome != outcomes[worst] {
		return fmt.Errorf("outcome %q of %q", p.Outcome, p.What)
	}
	return nil
}

// sources are the hashes of the kernels that are committed.
func sources() map[string]string {
	found := map[string]string{}
	for _, m := range kernels.Modules() {
		found[m] = string(regexp.MustCompile(`sources sha256:([0-9a-f]{64})`).FindSubmatch(kernels.PTX(m))[1])
	}
	return found
}

// behind lists the kernels that have changed since the newest record of a device with the processor's bits; it may be empty.
func behind(records []*record, now map[string]string) string {
	var newest *record
	for _, r := range records {
		if r.Device != "none" && r.Parts["H2"].Outcome == "passed" && (newest == nil || r.Date.After(newest.Date)) {
			newest = r
		}
	}
	if newest == nil {
		return "no record of a device has passed H2"
	}
	var changed []string
	for _, m := range slices.Sorted(maps.Keys(now)) {
		if newest.Kernels[m] != now[m] {
			changed = append(changed, m)
		}
	}
	if len(changed) == 0 {
		return ""
	}
	return fmt.Sprintf("since the record of %v on %s other kernels: %s", newest.Date, newest.Device, strings.Join(changed, ", "))
}

// committed reads the records that are there.
func committed(t *testing.T) (all []*record) {
	t.Helper()
	files, err := filepath.Glob("results/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := parse(data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		all = append(all, r)
	}
	return all
}

// Records are in order; with RLHOST_CUDA_RECORD=require the newest that has passed is of the kernels that are there.
func TestResults_AreOfTheseKernels(t *testing.T) {
	if why := behind(committed(t), sources()); why != "" {
		if t.Log(why); os.Getenv("RLHOST_CUDA_RECORD") == "require" {
			t.Error("the kernels that are there have not passed on a device")
		}
	}
}

// The page is that of the newest record; without one there is none.
func TestResults_ThePageIsOfTheNewestRecord(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/results/cuda.md"))
	if len(committed(t)) == 0 {
		if err == nil {
			t.Error("docs/results/cuda.md is there, and no record")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := table(t); !bytes.Equal(page, want) {
		t.Error("docs/results/cuda.md is stale: run bench/cuda/table.py > docs/results/cuda.md")
	}
}

// table runs table.py.
func table(t *testing.T, args ...string) []byte {
	t.Helper()
	testkit.Needs(t, "python3")
	c := exec.Command("python3", append([]string{"bench/cuda/table.py"}, args...)...)
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// written has record.py record parts with scripts as programs, and returns the record.
func written(t *testing.T, programs map[string]string, env []string, parts ...string) (path string, data []byte) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ptx, err := filepath.Abs(filepath.Join(root, "gpu"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(ptx, filepath.Join(dir, "gpu")); err != nil {
		t.Fatal(err)
	}
	return recorded(t, dir, env, parts...)
}

// recorded has record.py record parts in a folder, and returns the record.
func recorded(t *testing.T, dir string, env []string, parts ...string) (path string, data []byte) {
	t.Helper()
	testkit.Needs(t, "python3")
	self, err := filepath.Abs("record.py")
	if err != nil {
		t.Fatal(err)
	}
	results := t.TempDir()
	c := exec.Command("python3", append([]string{self}, parts...)...)
	c.Dir, c.Env = dir, append(append(os.Environ(), "RLHOST_CUDA_RESULTS="+results), env...)
	out, err := c.CombinedOutput()
	t.Logf("%v\n%s", err, out)
	files, err := filepath.Glob(filepath.Join(results, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("records %v, %v", files, err)
	}
	if data, err = os.ReadFile(files[0]); err != nil {
		t.Fatal(err)
	}
	return files[0], data
}

// The results of record.py have the required form, name tests with their outcomes, and are judged by the programs' output; the page has
// their figures. Damaged results are refused.
func TestRecord_IsWrittenReadAndJudged(t *testing.T) {
	prints := func(text string) string { return "cat <<'E'\n" + text + "\nE" }
	passes := "=== RUN TestIt\n--- PASS: TestIt (0.00s)\n    --- SKIP: TestIt/part (0.00s)\nPASS"
	path, data := written(t, map[string]string{
		"bin/driver.test": prints(passes), "bin/kernels.test": prints(passes), "bin/rlhost": prints(`{"reason": "env_steps"}`),
		"bin/cuda.test": prints(passes + "\nBenchmarkCeiling/fma-16 \t 100 \t 5 ns/op \t 33.5 TFLOP/s"),
	}, nil, "H2", "H4", "H3", "H8", "H9")
	r, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"H2": "passed", "H4": "passed", "H3": "failed", "H8": "skipped", "H9": "passed"} {
		if got := r.Parts[name].Outcome; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if of := r.Parts["H2"].Runs[0].Tests; of["TestIt"] != "passed" || of["TestIt/part"] != "skipped" {
		t.Errorf("tests %v", of)
	}
	page := string(table(t, path))
	for _, want := range []string{"| H3 |", "| failed |", "| `Ceiling/fma-16` | 5 ns/op, 33.5 TFLOP/s |", "| device | none |"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	for _, damage := range [][2]string{{`"device": "none"`, `"device": ""`}, {`"outcome": "failed"`, `"outcome": "passed"`}, {`"TestIt": "passed"`, `"TestIt": "fine"`}, {`"bar"`, `"bars"`}} {
		if _, err := parse(bytes.Replace(data, []byte(damage[0]), []byte(damage[1]), 1)); err == nil {
			t.Errorf("with %s for %s it is taken", damage[1], damage[0])
		}
	}
}

// A record is of the kernels that there are, of a device, and has passed; the newest counts.
func TestBehind(t *testing.T) {
	now := map[string]string{"pack": "2", "dataset": "1"}
	of := func(day int, device, pack, outcome string) *record {
		return &record{Device: device, Date: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC), Kernels: map[string]string{"pack": pack, "dataset": "1"},
			Parts: map[string]result{"H2": {Outcome: outcome}}}
	}
	for says, records := range map[string][]*record{
		"":              {of(2, "H200", "2", "passed"), of(1, "H200", "1", "passed")},
		"no record":     {of(1, "none", "2", "passed"), of(1, "H200", "2", "failed")},
		"kernels: pack": {of(1, "H200", "2", "passed"), of(2, "H200", "1", "passed"), of(3, "H200", "2", "failed")},
	} {
		if got := behind(records, now); !strings.Contains(got, says) || (got == "") != (says == "") {
			t.Errorf("behind = %q, want %q", got, says)
		}
	}
}
