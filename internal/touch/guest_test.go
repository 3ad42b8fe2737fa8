package touch

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// guestAxis adds a language whose compiler is cp. The build program and the tests of all guests need no more than its row
// in the table of guests.
func guestAxis() axis {
	return axis{name: "an SDK language for guests", doors: 2,
		files: map[string]string{
			"sdk/toy/abi.toy.tmpl": `{{range .Env.Exports}}an environment has {{.Name}}
{{end}}`,
			"sdk/toy/abi.toy": "",
			"examples/plugins/corridor-toy/corridor.toy": "walk\n",
		},
		edits: []edit{
			{"examples/plugins/guests.go", "\t\t{Module: \"mountaincar-c", `		{Module: "corridor-toy/corridor.wasm", Env: "corridor", Committed: true, Language: Language{
			Name: "Toy", Sources: []string{"sdk/toy/*", "{folder}/*.toy"}, Compilers: []Compiler{{
				Version: []string{"echo", "toy 1"}, Probe: []string{"true"}, Build: []string{"cp", "../corridor-c/corridor.wasm", "{module}"},
			}},
		}},
`},
			{"docs/start/environment.md", "## C\n", "## Toy\n\nWrite `corridor.toy`:\n\n```toy corridor.toy\nwalk\n```\n\n"},
		},
		check: func(t *testing.T, p *toys) {
			dir := p.tree(t, "go.mod", "go.sum", "core", "docs", "examples", "hostabi", "internal/testkit", "pipeline/export/interpreter", "plugins/author", "plugins/envcheck", "plugins/plugintest", "plugins/wasm", "sdk")
			for _, args := range [][]string{
				{"run", "./hostabi/internal/abigen"},
				{"run", "./examples/plugins/build", "corridor-toy"},
				{"test", "./examples/plugins", "-run", "TestCorridor|TestModules_AreMade|TestModules_AreWhat/corridor-toy|TestPage_Shows"},
			} {
				c := exec.Command("go", args...)
				c.Dir = dir
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("go %v: %v\n%s", args, err, out)
				}
			}
			if view, err := os.ReadFile(filepath.Join(dir, "sdk/toy/abi.toy")); err != nil || !strings.Contains(string(view), "an environment has rl_step\n") {
				t.Errorf("the language's view of hostabi: %q, %v", view, err)
			}
			module := filepath.Join(dir, "examples/plugins/corridor-toy/corridor.wasm")
			p.says(t, " 0 failed", "check", module)
			p.write(t, "guest.toml", pipelineWith("", ""))
			p.says(t, "evaluation: return", "train", "guest.toml", "--set", "env.task.use="+module)
		}}
}

// tree copies parts of the repository, with all toys, into a new folder, and returns that.
func (p *toys) tree(t *testing.T, parts ...string) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, text []byte) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range parts {
		err := fs.WalkDir(os.DirFS(p.root), part, func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.Name() == "target": // of Cargo
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			text, err := os.ReadFile(filepath.Join(p.root, name))
			put(name, text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range p.texts {
		put(name, []byte(text))
	}
	return dir
}
