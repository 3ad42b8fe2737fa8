package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// Guests in each language read the files that they are granted, and nothing else.
func TestData_GuestsReadFiles(t *testing.T) {
	t.Parallel()
	maps := filepath.Join(t.TempDir(), "maps")
	if err := os.MkdirAll(filepath.Join(maps, "sizes"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(maps, "sizes/length.txt"), []byte("12\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "rlhost")
	testkit.Build(t, ".", program)
	for language, build := range map[string]func(t *testing.T) string{
		"C":    func(t *testing.T) string { return buildC(t, "data/corridor.c", false) },
		"Go":   func(t *testing.T) string { return buildGo(t, "data/go") },
		"Rust": buildRustData,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			guest := build(t)
			out, err := exec.Command(program, "check", guest, "--grant", "log", "--data", maps).CombinedOutput()
			if err != nil || !strings.Contains(string(out), " 0 failed") {
				t.Errorf("check --data: %v\n%s", err, out)
			}
			out, err = exec.Command(program, "check", guest, "--grant", "log").CombinedOutput()
			if err == nil {
				t.Errorf("check without --data passes:\n%s", out)
			}
		})
	}
}

// buildRustData builds the guest in Rust.
func buildRustData(t *testing.T) string {
	cargo := testkit.NeedsRust(t, testkit.WasmTarget)
	target := t.TempDir()
	build := exec.Command(cargo, "build", "--quiet", "--offline", "--release", "--target", testkit.WasmTarget, "--target-dir", target)
	build.Dir = "testdata/data/rust"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cargo build: %v\n%s", err, out)
	}
	return filepath.Join(target, testkit.WasmTarget, "release/counter.wasm")
}

// A folder of data is read once where an environment is loaded, and not again to know its digest.
func TestData_IsReadOnceAtALoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "maps/length.txt")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	pipeline := "rlhost = 1\n[run]\nname = \"once\"\n[train]\npreset = \"fast\"\nenv = \"task\"\n[env.task]\nuse = \"./cartpole.wasm\"\ndata = \"./maps\"\n"
	module, err := os.ReadFile("../../examples/plugins/cartpole-c/cartpole.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{file: "12\n", filepath.Join(dir, "p.toml"): pipeline, filepath.Join(dir, "cartpole.wasm"): string(module)} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "rlhost")
	testkit.Build(t, ".", program)
	opens := testkit.Opens(t, file)
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"validate", "p.toml"}, 1},
		{[]string{"check", "cartpole.wasm", "--data", "maps"}, 1},
		{[]string{"train", "p.toml", "--set", "run.stop.env_steps=5000"}, 4}, // and for its digest in run.json, to keep a copy, and to see whether it is still what was loaded
	} {
		cmd := exec.Command(program, c.args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("rlhost %s: %v\n%s", strings.Join(c.args, " "), err, out)
		}
		if got := opens(); got != c.want {
			t.Errorf("rlhost %s reads the file %d times, want %d", strings.Join(c.args, " "), got, c.want)
		}
	}
}
