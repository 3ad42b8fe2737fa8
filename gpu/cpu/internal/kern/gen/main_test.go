package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The committed assembly equals the generator's output.
func TestCommittedFilesAreFresh(t *testing.T) {
	dir := t.TempDir()
	out := []string{filepath.Join(dir, "kern_amd64.s"), filepath.Join(dir, "kern_amd64.go")}
	cmd := exec.Command("go", "run", ".", "-out", out[0], "-declarations", out[1])
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, path := range out {
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ = bytes.Cut(got, []byte("\n")) // the first line names the command
		if _, want, _ = bytes.Cut(want, []byte("\n")); !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes", filepath.Base(path))
		}
	}
}
