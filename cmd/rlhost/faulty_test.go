package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const faultyGuests = "testdata/guests"

// faultySources returns the sources of the guests that the scripts use, in the order of their names.
func faultySources(t *testing.T) []string {
	t.Helper()
	sources, err := filepath.Glob(faultyGuests + "/*.c")
	if err != nil || len(sources) == 0 {
		t.Fatalf("%v, %d sources", err, len(sources))
	}
	return sources
}

// The modules are guests of the ABI at the time of their build, so their sources are the files next to them, without the headers.
func TestFaultyGuests_AreBuiltFromTheirSources(t *testing.T) {
	t.Parallel()
	sum := sha256.New()
	for _, file := range append(faultySources(t), faultyGuests+"/build.sh") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(data)
	}
	record, err := os.ReadFile(faultyGuests + "/build.txt")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x\n", sum.Sum(nil)); string(record) != want {
		t.Errorf("build.txt says %q, the sources are %q: run cmd/rlhost/testdata/guests/build.sh", record, want)
	}
}

func TestFaultyGuests_AreBuiltByTodaysHeaders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	build := exec.Command(faultyGuests + "/build.sh")
	build.Env = append(os.Environ(), "OUT="+dir)
	out, err := build.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skipf("%s", out)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, source := range faultySources(t) {
		name := filepath.Base(source[:len(source)-len(".c")]) + ".wasm"
		built, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.HasPrefix(built, []byte("\x00asm")) {
			t.Errorf("%s: %v, %d bytes", name, err, len(built))
		}
	}
}
