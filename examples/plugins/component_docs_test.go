package plugins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/internal/testkit"
)

// The page about components is followed, language by language: its files are built by its lines and are modules of components.
func TestComponentPage_IsFollowed(t *testing.T) {
	const page = "../../docs/start/component.md"
	testkit.Reads(t, page, "../../sdk/c/*.h")
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	testkit.Build(t, "../../cmd/rlhost", bin)
	fence := regexp.MustCompile("(?ms)^```(\\w+)(?: (\\S+))?\n(.*?)^```\n")
	for _, section := range strings.Split(string(data), "\n## A module in ")[1:] {
		language, body, _ := strings.Cut(section, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		t.Run(language, func(t *testing.T) {
			guests := slices.DeleteFunc(plugins.Guests(), func(g plugins.Guest) bool { return !g.Component || g.Language.Name != language })
			if len(guests) == 0 {
				t.Fatalf("no component is built from %s", language)
			}
			clang := "clang-19"
			if _, err := exec.LookPath(clang); err != nil {
				clang = "clang"
			}
			if _, err := exec.LookPath(map[string]string{"C": clang, "Go": "go", "Rust": "cargo"}[language]); err != nil {
				t.Skip(err)
			}
			dir, err := os.MkdirTemp("testdata", "page") // within the module, for Go
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			files := 0
			for _, m := range fence.FindAllStringSubmatch(body, -1) {
				if m[2] == "" {
					shell(t, dir, bin, strings.NewReplacer("clang ", clang+" ", "-I sdk/c", "-I "+root(t)+"/sdk/c").Replace(m[3]))
					continue
				}
				files++
				file := filepath.Join(dir, m[2])
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(m[3]), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if language == "Rust" {
				cargo(t, dir, guests[0])
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

// cargo builds the file of the page in the place of a guest's own.
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
