package testkit

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Mistake is a wrong text in place of a right one, which stands once in a file of the package that is tested.
type Mistake struct {
	Name, File   string
	Right, Wrong string
}

// FindsMistakes fails where tests of this package, as in "TestA|TestB", pass although a mistake is in its code. env is added to their environment.
func FindsMistakes(t *testing.T, tests string, env []string, mistakes []Mistake) {
	t.Helper()
	for _, m := range mistakes {
		t.Run(strings.ReplaceAll(m.Name, " ", "_"), func(t *testing.T) {
			overlay := m.overlay(t)
			run := exec.CommandContext(t.Context(), "go", "test", "-count", "1", "-timeout", "2m", "-overlay", overlay, "-run", "^("+tests+")$", ".")
			run.Env = append(os.Environ(), env...)
			out, err := run.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("%s passes with %q instead of %q", tests, m.Wrong, m.Right)
			case !strings.Contains(string(out), "--- FAIL: "):
				t.Errorf("%s could not be run: %v\n%s", tests, err, out)
			}
		})
	}
}

// overlay writes the file with the mistake and the list that replaces the right one by it.
func (m *Mistake) overlay(t *testing.T) string {
	t.Helper()
	right, err := os.ReadFile(m.File)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(right), m.Right); n != 1 {
		t.Fatalf("%s has %q %d times, want once", m.File, m.Right, n)
	}
	dir := t.TempDir()
	wrong, list := filepath.Join(dir, "wrong.go"), filepath.Join(dir, "overlay.json")
	file, err := filepath.Abs(m.File)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(map[string]map[string]string{"Replace": {file: wrong}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{wrong: strings.Replace(string(right), m.Right, m.Wrong, 1), list: string(doc)} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return list
}
