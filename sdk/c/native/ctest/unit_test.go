package ctest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func TestLibrary_KeepsItsPromisesUnderSanitizers(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/unit.c", "../testdata/unit_text.c", "../testdata/unit_memory.c", "../testdata/unit_link.c", "../testdata/unit_request.c", "../testdata/unit_ask.c")
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLibrary_EveryCompilerLikesIt enables more warnings than the build of plugins.
func TestLibrary_EveryCompilerLikesIt(t *testing.T) {
	sources := Sources(t)
	for _, name := range []string{"gcc", "clang-19", "clang"} {
		compiler, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			needNghttp2(t, compiler)
			args := append([]string{"-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"}, sources...)
			if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestHeader_IsForCPlusPlusToo(t *testing.T) {
	compiler, err := exec.LookPath("c++")
	if err != nil {
		t.Skip("no C++ compiler")
	}
	header, err := filepath.Abs("../rlhost.h")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(compiler, "-x", "c++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", header).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
