package runner

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stand writes a program that takes the place of Python: a script of the shell, whose arguments are -m rlhost.tracking NAME FOLDER.
func stand(t *testing.T, script string) *tracker {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &tracker{name: "wandb", python: path, dir: dir}
}

func TestTracker_GetsEveryRow(t *testing.T) {
	l := stand(t, `echo "$1 $2 $3" >"$4/words"; cat >"$4/rows"`)
	for i := range 1000 {
		if err := l.write(time.Now(), 0, []metric{{globalStep, float64(i)}, {"a", 0.5}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	words, _ := os.ReadFile(filepath.Join(l.dir, "words"))
	rows, _ := os.ReadFile(filepath.Join(l.dir, "rows"))
	lines := strings.Split(strings.TrimSpace(string(rows)), "\n")
	if string(words) != "-m rlhost.tracking wandb\n" || len(lines) != 1000 || lines[999] != `{"global_step":999,"a":0.5}` {
		t.Errorf("%q, %d rows, the last %s", words, len(lines), lines[len(lines)-1])
	}
}

func TestTracker_SaysWhyItsProgramHasEnded(t *testing.T) {
	l := stand(t, "echo first; echo 'wandb is not installed for python: pip install wandb' >&2; exit 1")
	var err error
	for end := time.Now().Add(30 * time.Second); (err == nil || strings.Contains(err.Error(), "is lost")) && time.Now().Before(end); {
		err = l.write(time.Now(), 0, []metric{{"a", 1}})
	}
	if err == nil || !strings.Contains(err.Error(), `log "wandb": its program has ended`) || !strings.HasSuffix(err.Error(), "wandb is not installed for python: pip install wandb") {
		t.Error(err)
	}
	if err := l.close(); err == nil {
		t.Error("close says nothing of the end")
	}
	missing := &tracker{name: "mlflow", python: filepath.Join(t.TempDir(), "python"), dir: "."}
	for range 2 {
		if err := missing.write(time.Now(), 0, nil); err == nil || !strings.Contains(err.Error(), `log "mlflow": `) {
			t.Error(err)
		}
	}
	if err := missing.close(); err == nil {
		t.Error("nothing is said of a program that is not there")
	}
}

// A program that reads nothing costs rows, and no time.
func TestTracker_OfASlowProgramLosesRowsAlone(t *testing.T) {
	l := stand(t, `read -r line <"$4/go"; cat >"$4/rows"`)
	if err := syscall.Mkfifo(filepath.Join(l.dir, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	lost := 0
	for range 3 * trackerRows {
		err := l.write(time.Now(), 0, []metric{{strings.Repeat("x", 100), 1}})
		if err != nil && !strings.Contains(err.Error(), "this one is lost") {
			t.Fatal(err)
		}
		if err != nil {
			lost++
		}
	}
	if lost < trackerRows {
		t.Errorf("%d rows were lost of %d, of which %d wait", lost, 3*trackerRows, trackerRows)
	}
	if err := os.WriteFile(filepath.Join(l.dir, "go"), []byte("go\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	rows, _ := os.ReadFile(filepath.Join(l.dir, "rows"))
	if got := strings.Count(string(rows), "\n"); got != 3*trackerRows-lost {
		t.Errorf("%d rows arrived, want %d", got, 3*trackerRows-lost)
	}
}
