package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script puts a program into a folder.
func script(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/bash\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// noToolchain is what cargo and rustc of a rustup without a toolchain do.
const noToolchain = "echo \"error: rustup could not choose a version of $0 to run\" >&2; exit 1"

func TestRust_IsNotHereWithoutAToolchain(t *testing.T) {
	for what, c := range map[string]struct{ rustc, want string }{
		"no toolchain": {noToolchain, "rustup default stable"},
		"no target":    {"echo /nonexistent/lib", "rustup target add " + WasmTarget},
		"all":          {"echo /", ""},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			script(t, dir, "cargo", noToolchain)
			script(t, dir, "rustc", c.rustc)
			t.Setenv("PATH", dir)
			switch err := Rust(WasmTarget); {
			case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("Rust = %v, want %q", err, c.want)
			}
		})
	}
}

// Where rustup has no toolchain, `make tools` installs a minimal one, or names the command, and everything else continues.
func TestTools_InstallAToolchainOfRust(t *testing.T) {
	text, err := os.ReadFile("../../bench/tools.sh")
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ rustup, asked, told string }{
		"may":     {"exit 0", "toolchain install stable --profile minimal --target wasm32-unknown-unknown --no-self-update\ndefault stable\n", ""},
		"may not": {"exit 1", "toolchain install stable --profile minimal --target wasm32-unknown-unknown --no-self-update\n", "rustup default stable && rustup target add wasm32-unknown-unknown"},
	} {
		t.Run(what, func(t *testing.T) {
			root := t.TempDir()
			dir, asked := filepath.Join(root, "path"), filepath.Join(root, "asked")
			for _, folder := range []string{dir, filepath.Join(root, "bench")} {
				if err := os.Mkdir(folder, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, name := range []string{"bash", "dirname", "id", "grep", "cat"} {
				if err := os.Symlink(Needs(t, name), filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			script(t, dir, "rustc", noToolchain)
			script(t, dir, "rustup", "echo \"$@\" >>"+asked+"\n"+c.rustup)
			tools := filepath.Join(root, "bench", "tools.sh")
			if err := os.WriteFile(tools, text, 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(Needs(t, "bash"), tools)
			cmd.Env = []string{"PATH=" + dir}
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if got, _ := os.ReadFile(asked); string(got) != c.asked {
				t.Errorf("rustup was asked for %q, want %q", got, c.asked)
			}
			if told := strings.Contains(string(out), "rustup has no toolchain"); told != (c.told != "") || !strings.Contains(string(out), c.told) {
				t.Errorf("tools.sh printed %q, want %q in it", out, c.told)
			}
		})
	}
}
