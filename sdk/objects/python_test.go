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
	checkout, err := filepath.Abs("../python") // objects need no extension, so nothing has to be built or installed
	if err != nil {
		t.Fatal(err)
	}
	host := serve(t)
	cmd := exec.Command(python, "-W", "error::ResourceWarning", "-m", "unittest", "-v", "test_objects")
	cmd.Dir = "../python/tests"
	cmd.Env = append(os.Environ(), wire.PathVariable+"="+host.Path(), "PYTHONPATH="+checkout, "PYTHONDONTWRITEBYTECODE=1")
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
