package main

import (
	"debug/elf"
	"os"
	"runtime/debug"
	"slices"
	"testing"
)

// The program and its test link the same: without cgo neither needs a library or a dynamic linker.
func TestProgram_IsStatic(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok || !slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
		t.Skip("built with cgo")
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if libraries, err := f.ImportedLibraries(); len(libraries) > 0 || err != nil {
		t.Errorf("the program needs %v, %v", libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program needs a dynamic linker")
		}
	}
}
