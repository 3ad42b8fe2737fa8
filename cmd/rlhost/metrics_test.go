package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/plugins/learner"
	"github.com/rlhost/rlhost/plugins/runner"
)

// notWritten are metrics that no run of the test can write, with the part of their names that the sources must have.
var notWritten = map[string]string{
	"cuda/staged_bytes": `"cuda/staged_bytes"`, // needs a GPU
}

// TestMetrics_RunsWriteWhatIsDescribed: the runs of testdata/metrics write metrics that core/metrics describes, and no other; each that is
// described is written by one of them.
func TestMetrics_RunsWriteWhatIsDescribed(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	written := map[string]string{} // the folder of a run, by the names in its files
	p := scripts(t, "testdata/metrics")
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		e.Defer(func() {
			mu.Lock()
			defer mu.Unlock()
			if err := readMetrics(e.WorkDir, written); err != nil {
				t.Error(err)
			}
			for _, file := range filesWithoutRow(t, e.WorkDir) {
				t.Errorf("docs/reference/run-folder.md has no row for %s", file)
			}
		})
		return setup(e)
	}
	if !t.Run("runs", func(t *testing.T) { testscript.Run(t, p) }) {
		return
	}
	described := map[string]bool{}
	for name, run := range written {
		m, _, ok := metrics.Find(name)
		if !ok {
			t.Errorf("%s writes %s, which core/metrics does not describe", run, name)
		}
		described[m.Name] = true
	}
	for _, g := range metrics.Groups {
		for _, m := range g.Metrics {
			if literal := notWritten[m.Name]; literal != "" {
				if !inSources(t, literal) {
					t.Errorf("no source has %s", literal)
				}
			} else if !described[m.Name] {
				t.Errorf("core/metrics describes %s, which no run writes", m.Name)
			}
		}
	}
}

// Every learner reports these, whatever its options.
func TestMetrics_TheLearnersReportsAreDescribed(t *testing.T) {
	for _, name := range learner.StatNames() {
		if _, _, ok := metrics.Find(name); !ok {
			t.Errorf("core/metrics does not describe %s", name)
		}
	}
}

// readMetrics notes the names in all files of metrics below a folder.
func readMetrics(dir string, names map[string]string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != runner.MetricsFile {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			var row map[string]*float64
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				return err
			}
			for name := range row {
				names[name] = filepath.Dir(path)
			}
		}
		return nil
	})
}

// filesWithoutRow returns the files of runs below a folder that the page of run folders does not have.
func filesWithoutRow(t *testing.T, dir string) (missing []string) {
	page, err := os.ReadFile("../../docs/reference/run-folder.md")
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "runs/*/*/*"))
	inner, err2 := filepath.Glob(filepath.Join(dir, "runs/*/*/checkpoints/*"))
	innermost, err3 := filepath.Glob(filepath.Join(dir, "runs/*/*/checkpoints/*/*"))
	if err := errors.Join(err, err2, err3); err != nil || len(innermost) == 0 {
		t.Fatalf("%d files in checkpoints, %v", len(innermost), err)
	}
	for _, file := range slices.Concat(found, inner, innermost) {
		parts := strings.Split(strings.TrimPrefix(file, dir+"/runs/"), "/")[2:] // without name and number
		row := parts[0]
		switch {
		case row == "plugins" || row == "checkpoints" && len(parts) == 1:
			row += "/"
		case len(parts) == 3 && filepath.Ext(file) == ".json":
			row = "VERSION/" + parts[2]
		case len(parts) == 3:
			row = filepath.Ext(file) + "`"
		case len(parts) == 2 && strings.HasPrefix(parts[1], "best.") && parts[1] != "best.json":
			row = "best.POLICY.json"
		case len(parts) == 2 && filepath.Ext(file) == ".json":
			row = parts[1]
		case len(parts) == 2:
			continue // a checkpoint's own folder
		}
		if !strings.Contains(string(page), row) {
			missing = append(missing, file)
		}
	}
	return missing
}

// inSources reports whether a program's source, apart from the description of metrics, has a text.
func inSources(t *testing.T, text string) (found bool) {
	for _, root := range []string{"../../cmd", "../../plugins", "../../pipeline"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || found || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			found = strings.Contains(string(source), text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
