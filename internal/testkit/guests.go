package testkit

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins"
)

// Guests returns the modules of all environments among the example guests, or of one environment's or component's guests, by the guests' names.
// Uncommitted modules are built into a folder, once; they are left out where their compiler is missing, and in short tests.
func Guests(t testing.TB, env, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, g := range plugins.Guests() {
		if env != "" && g.Env != env || env == "" && g.Component || testing.Short() && !g.Committed {
			continue
		}
		file, err := Guest(g, folder)
		if errors.Is(err, plugins.ErrNoCompiler) {
			t.Log(err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		files[g.Name()] = file
	}
	return files
}

// Guest returns the file of a guest's module, which it builds into a folder if the module is neither committed nor
// there.
func Guest(g plugins.Guest, folder string) (string, error) {
	if g.Committed {
		return g.Path()
	}
	file := filepath.Join(folder, g.Name()+".wasm")
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	return file, g.Build(file)
}

// Committed returns the absolute path of the module in C of an example whose module is committed, such as flicker.
func Committed(t testing.TB, name string) string {
	t.Helper()
	path, err := plugins.Guest{Module: name + "-c/" + name + ".wasm"}.Path()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
