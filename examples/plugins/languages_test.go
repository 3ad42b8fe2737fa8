package plugins_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// TestLanguages_WithoutAnSDKHaveTheSameCorridor builds the environments of the page about other languages by its lines, in an empty
// folder, and runs them next to the one in C.
func TestLanguages_WithoutAnSDKHaveTheSameCorridor(t *testing.T) {
	testkit.Needs(t, "node")
	runs := [][]string{{"save=no"}, {"save=no", "layout=columns", "mode=next_step", "config=length=5"}, {"config=len=3"}, {"config=length=1"}}
	want := runGuest(t, "corridor-c/corridor.wasm", runs...)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for section, compiler := range map[string]string{"D": "ldc2", "Nim": "nim"} {
		t.Run(section, func(t *testing.T) {
			testkit.Needs(t, compiler)
			testkit.Reads(t, "../../sdk/c/*.h", "../../sdk/c/rl_guest.c")
			dir, tools := t.TempDir(), t.TempDir()
			for name, here := range map[string]string{"clang": testkit.Needs(t, "clang-19", "clang"), "wasm-ld": testkit.Needs(t, "wasm-ld-19", "wasm-ld")} {
				if err := os.Symlink(here, filepath.Join(tools, name)); err != nil {
					t.Fatal(err)
				}
			}
			line := ""
			for _, b := range readPage(t, references+"others.md")[section] {
				if b.name == "" || filepath.Ext(b.name) == "" {
					line = b.text
					continue
				}
				if source, err := os.ReadFile(filepath.Join("languages", b.name)); err != nil || string(source) != b.text {
					t.Errorf("%s of the page is not the one in languages: %v", b.name, err)
				}
				if err := os.WriteFile(filepath.Join(dir, b.name), []byte(b.text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.Command("sh", "-euc", line)
			c.Dir, c.Env = dir, append(os.Environ(), "RLHOST="+root, "PATH="+tools+":"+os.Getenv("PATH"))
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got := runGuest(t, filepath.Join(dir, "corridor.wasm"), runs...); !slices.Equal(got, want) {
				t.Errorf("its runs are %q, in C %q", got, want)
			}
		})
	}
}

// TestLanguages_ZigBuildsAProject follows the page about the package of Zig with the corridor of the tutorial.
func TestLanguages_ZigBuildsAProject(t *testing.T) {
	if os.Getenv("RLHOST_LONG") == "" {
		t.Skip("the first build of a machine compiles Zig's build system: make test-langs")
	}
	testkit.Needs(t, "node")
	zig := testkit.Needs(t, filepath.Join(root(t), ".venv/bin/python-zig"))
	testkit.Reads(t, "../../sdk/zig/*", "../../sdk/c/*.h", "../../sdk/c/rl_guest.c", "corridor-zig/corridor.zig")
	above := t.TempDir()
	dir := filepath.Join(above, "corridor")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Symlink(root(t), filepath.Join(above, "rlhost"))); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("corridor-zig/corridor.zig")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"corridor.zig": string(source)}
	for _, b := range readPage(t, references+"zig.md")["A project with build.zig"] {
		files[b.name] = b.text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if files["build"] != "zig build\n" {
		t.Errorf("the page builds by %q", files["build"])
	}
	build := exec.Command(zig, "build")
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	runs := [][]string{{"save=no"}, {"save=no", "layout=columns", "mode=next_step", "config=length=5"}}
	want, got := runGuest(t, "corridor-c/corridor.wasm", runs...), runGuest(t, filepath.Join(dir, "zig-out/bin/corridor.wasm"), runs...)
	if !slices.Equal(got, want) {
		t.Errorf("its runs are %q, in C %q", got, want)
	}
}
