// Package rig is shared by the tests of native plugins: the test binary as a plugin, a plugin without any SDK, and waits for processes.
package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/hostabi/native"
)

// Main is for TestMain: it makes the test binary a plugin as well: play gets the plugin's role and arguments. end runs after the tests.
func Main(m *testing.M, play func(role string, args []string), end func()) {
	if os.Getenv(native.CookieKey) != "" && len(os.Args) > 1 {
		play(os.Args[1], os.Args[2:])
		os.Exit(0)
	}
	code := m.Run()
	end()
	os.Exit(code)
}

// Self returns the path of the test binary.
func Self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Gymnasium returns the Python that runs the plugin for environments of Gymnasium, and its arguments. It skips the test
// where there is none.
func Gymnasium(t testing.TB) (python string, args []string) {
	t.Helper()
	python, err := filepath.Abs("../../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("no Python environment: run make tools")
	}
	if out, err := exec.Command(python, "-c", "import rlhost.gymnasium").CombinedOutput(); err != nil {
		t.Fatalf("the package is not in .venv: run make tools\n%s", out)
	}
	return python, []string{"-m", "rlhost.gymnasium"}
}
