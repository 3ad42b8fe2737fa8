package graph_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// A script of Python is another program once a script next to it has changed, and an environment of Gymnasium once its author's module has.
func TestDigest_OfPythonHasTheAuthorsFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"python", "mine.py", "helper.py", "room/__init__.py", "notes.txt"} {
		write(name, "")
	}
	script := graph.PluginTable{Name: "mine", Path: "./mine.py"}
	gymnasium := graph.PluginTable{Name: "gymnasium", Path: filepath.Join(dir, "python")}
	of := func(use string) func() string {
		table := graph.EnvTable{Source: env.Source{Use: use}, Plugin: &gymnasium}
		return func() string { return table.Digest(dir, nil) }
	}
	for _, c := range []struct {
		of     string
		digest func() string
		yes    string // a file that belongs to it
		no     string // one that does not
	}{
		{"a script", func() string { return script.Digest(dir) }, "helper.py", "notes.txt"},
		{"a module of Gymnasium", of("mine:Room-v0"), "helper.py", "notes.txt"},
		{"a package of Gymnasium", of("room:Room-v0"), "room/__init__.py", "helper.py"},
		{"an environment of Gymnasium itself", of("CartPole-v1"), "python", "helper.py"},
	} {
		before := c.digest()
		write(c.no, c.of)
		if c.digest() != before {
			t.Errorf("%s is another after a change of %s", c.of, c.no)
		}
		write(c.yes, c.of)
		if now := c.digest(); now == before || now == "" {
			t.Errorf("%s is the same after a change of %s: %q", c.of, c.yes, now)
		}
	}
}
