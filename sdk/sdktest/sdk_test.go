package sdktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// needs returns the path of the first program that is here, or skips the test.
func needs(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("none of %v is here", names)
	return ""
}

// reads makes the test's cached result depend on files that only other programs open.
func reads(t *testing.T, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, no files", pattern, err)
		}
		for _, file := range files {
			if _, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// output runs a program and returns what it prints; it must succeed.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return string(out)
}

func TestC_HeaderKeepsItsPromises(t *testing.T) {
	cc := needs(t, "cc", "gcc", "clang")
	reads(t, "../c/*.h", "testdata/*.c")
	for name, define := range map[string]string{"box": "-DBOXED", "mask": "-DMASKED"} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "sdk_test")
			flags := []string{define, "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I", "../c", "testdata/sdk_test.c", "-o", program, "-lm"}
			sanitize := append([]string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}, flags...)
			if exec.Command(cc, sanitize...).Run() != nil {
				output(t, exec.Command(cc, flags...)) // a machine without sanitizers
			}
			if got := output(t, exec.Command(program)); got != "0 failures\n" {
				t.Error(got)
			}
		})
	}
}

func TestRust_CrateKeepsItsPromises(t *testing.T) {
	cmd := exec.Command(needs(t, "cargo"), "test", "--quiet", "--offline", "--lib")
	reads(t, "../rust/Cargo.toml", "../rust/src/*.rs")
	cmd.Dir = "../rust"
	if got := output(t, cmd); !strings.Contains(got, "test result: ok") {
		t.Error(got)
	}
}

func TestGuests_MemoryForTheHostIsLeftAlone(t *testing.T) {
	node := needs(t, "node")
	for name, module := range testkit.Guests(t, "cartpole", t.TempDir()) {
		t.Run(name, func(t *testing.T) {
			reads(t, module, "testdata/*.mjs")
			if got := output(t, exec.Command(node, "testdata/stress_memory.mjs", module)); !strings.HasPrefix(got, "ok ") {
				t.Error(got)
			} else {
				t.Log(strings.TrimSpace(got))
			}
		})
	}
}
