package sdktest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

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
	cc := testkit.Needs(t, "cc", "gcc", "clang")
	testkit.Reads(t, "../c/*.h", "testdata/*.c")
	for name, define := range map[string]string{"box": "-DBOXED", "mask": "-DMASKED", "several": "-DSEVERAL", "acts": "-DACTS"} {
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

// What rl_env.hpp saves of a class, and what it says of one that cannot be saved.
func TestCPP_ClassesAreSaved(t *testing.T) {
	cc := testkit.Needs(t, "c++", "g++", "clang++")
	testkit.Reads(t, "../c/*.h", "../c/*.hpp", "testdata/*.cpp")
	program := filepath.Join(t.TempDir(), "class_test")
	flags := []string{"-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-I", "../c", "testdata/class_test.cpp", "-o", program}
	sanitize := append([]string{"-fsanitize=address,undefined", "-fno-sanitize-recover=all"}, flags...)
	if exec.Command(cc, sanitize...).Run() != nil {
		output(t, exec.Command(cc, flags...)) // a machine without sanitizers
	}
	if got := output(t, exec.Command(program)); got != "0 failures\n" {
		t.Error(got)
	}
	for define, want := range map[string]string{"POINTER": "a pointer cannot be saved", "UNSAVED": "how is it saved? Give the class a member fields"} {
		out, err := exec.Command(cc, "-std=c++20", "-fsyntax-only", "-D"+define, "-I", "../c", "testdata/class_test.cpp").CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %s\n%s", define, err, want, out)
		}
	}
}

func TestC_HeaderShowsAnEnvironmentThatCompiles(t *testing.T) {
	cc := testkit.Needs(t, "cc", "gcc", "clang")
	testkit.Reads(t, "../c/*.h")
	header, err := os.ReadFile("../c/rl_env.h")
	if err != nil {
		t.Fatal(err)
	}
	shown, _, _ := strings.Cut(string(header), "//\tclang")
	var source strings.Builder
	for line := range strings.Lines(shown) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			source.WriteString(code)
		}
	}
	cmd := exec.Command(cc, "-std=c11", "-fsyntax-only", "-I", "../c", "-x", "c", "-")
	cmd.Stdin = strings.NewReader(source.String())
	output(t, cmd)
}

func TestRust_CrateKeepsItsPromises(t *testing.T) {
	cmd := exec.Command(testkit.NeedsRust(t, ""), "test", "--quiet", "--offline")
	testkit.Reads(t, "../rust/Cargo.toml", "../rust/src/*.rs")
	cmd.Dir = "../rust"
	if got := output(t, cmd); !strings.Contains(got, "test result: ok") {
		t.Error(got)
	}
}

func TestGuests_MemoryForTheHostIsLeftAlone(t *testing.T) {
	node := testkit.Needs(t, "node")
	for name, module := range testkit.Guests(t, "cartpole", t.TempDir()) {
		t.Run(name, func(t *testing.T) {
			testkit.Reads(t, module, "testdata/*.mjs")
			if got := output(t, exec.Command(node, "testdata/stress_memory.mjs", module)); !strings.HasPrefix(got, "ok ") {
				t.Error(got)
			} else {
				t.Log(strings.TrimSpace(got))
			}
		})
	}
}
