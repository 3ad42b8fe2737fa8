package objects

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/core/objects/wire"
)

func TestPythonClient(t *testing.T) {
	python, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("no Python environment: make tools")
	}
	if out, err := exec.Command(python, "../python/installed.py").CombinedOutput(); err != nil {
		t.Fatalf("the package in .venv is not the one of this checkout: run make tools\n%s", out)
	}
	host := serve(t)
	cmd := exec.Command(python, "-W", "error::ResourceWarning", "-m", "unittest", "-v", "test_objects")
	cmd.Dir = "../python/tests"
	cmd.Env = append(os.Environ(), wire.PathVariable+"="+host.Path(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	s := dial(t, host.Path())
	names, err := s.Names(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		settled(t, s, name, 0)
	}
}
