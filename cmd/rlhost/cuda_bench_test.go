package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// BenchmarkCUDAWithoutAGPU measures how long a training with backend = "cuda" takes to say that there is no driver, and the bare
// start of the program for comparison.
func BenchmarkCUDAWithoutAGPU(b *testing.B) {
	dir := b.TempDir()
	testkit.Build(b, ".", filepath.Join(dir, "rlhost"))
	testkit.Build(b, "../rlhost-cuda", filepath.Join(dir, "rlhost-cuda"))
	if err := os.WriteFile(filepath.Join(dir, "pipeline.toml"), []byte(plain+"[policy.main]\nbackend = \"cuda\"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		code int
		says string
		args []string
	}{{exitOK, "rlhost", []string{"version"}}, {exitPlugin, "error[E039]", []string{"train", "pipeline.toml"}}} {
		b.Run(c.args[0], func(b *testing.B) {
			for b.Loop() {
				run := exec.Command(filepath.Join(dir, "rlhost"), c.args...)
				run.Dir, run.Env = dir, append(os.Environ(), "RLHOST_CUDA_DRIVER=/nowhere.so")
				out, _ := run.CombinedOutput() // its code says more
				if run.ProcessState.ExitCode() != c.code || !bytes.Contains(out, []byte(c.says)) {
					b.Fatalf("rlhost %v exits with %d: %s", c.args, run.ProcessState.ExitCode(), out)
				}
			}
		})
	}
}
