package plugins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/internal/testkit"
)

// TestReferences_ShowComponents: the files that the references of C and Rust show are modules of components. That of Go is a part of an
// example.
func TestReferences_ShowComponents(t *testing.T) {
	testkit.Reads(t, references+"*.md", "../../sdk/c/*.h")
	bin := t.TempDir()
	testkit.Build(t, "../../cmd/rlhost", bin)
	for language, compilers := range map[string][]string{"C": {"clang-19", "clang"}, "Rust": {"cargo"}} {
		t.Run(language, func(t *testing.T) {
			guests := slices.DeleteFunc(plugins.Guests(), func(g plugins.Guest) bool { return !g.Component || g.Language.Name != language })
			if len(guests) == 0 {
				t.Fatalf("no component is built from %s", language)
			}
			compiler := testkit.Needs(t, compilers...)
			dir := t.TempDir()
			files := 0
			for _, b := range readPage(t, references+strings.ToLower(language)+".md")["Components"] {
				if b.name == "" {
					continue
				}
				files++
				file := filepath.Join(dir, b.name)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(b.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if language == "Rust" {
				cargo(t, dir, guests[0])
			} else {
				line := strings.NewReplacer("clang ", compiler+" ", "$RLHOST", root(t), "corridor", "purse").Replace(buildLine(t, "clang"))
				shell(t, dir, bin, line)
			}
			modules, _ := filepath.Glob(filepath.Join(dir, "*.wasm"))
			if files != 1 || len(modules) != 1 {
				t.Fatalf("%d files make the modules %v, want one of each", files, modules)
			}
			if out := shell(t, dir, bin, "rlhost inspect "+filepath.Base(modules[0])); !strings.Contains(out, "rl_manifest") {
				t.Errorf("rlhost inspect says %s", out)
			}
		})
	}
}

// shell runs lines in a folder, with a folder of programs, and returns what they print.
func shell(t *testing.T, dir, bin, lines string) string {
	t.Helper()
	cmd := exec.Command("sh", "-euc", lines)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, out)
	}
	return string(out)
}

// cargo builds the file of the reference instead of a guest's own.
func cargo(t *testing.T, dir string, like plugins.Guest) {
	t.Helper()
	for _, file := range []string{"Cargo.toml", ".cargo/config.toml"} {
		text, err := os.ReadFile(filepath.Join(like.Folder(), file))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		own := strings.ReplaceAll(string(text), `"../../../sdk/rust"`, `"`+root(t)+`/sdk/rust"`)
		if err := os.WriteFile(to, []byte(own), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	testkit.NeedsRust(t, testkit.WasmTarget)
	shell(t, dir, "", "cargo build --quiet --offline --release --target wasm32-unknown-unknown && cp target/wasm32-unknown-unknown/release/*.wasm .")
}
