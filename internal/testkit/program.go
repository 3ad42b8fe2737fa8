package testkit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Needs returns the path of the first program that is here, or skips the test.
func Needs(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skipf("none of %v is here", names)
	return ""
}

// Rust returns why no crate is built for a target here, or for this machine where it is empty; nil if one is. That cargo and rustc are in
// the path does not say it: rustup's own fail where there is no toolchain.
func Rust(target string) error {
	if _, err := exec.LookPath("cargo"); err != nil {
		return err
	}
	args := []string{"--print", "target-libdir"}
	if target != "" {
		args = append(args, "--target", target)
	}
	out, err := exec.Command("rustc", args...).Output()
	if err != nil {
		return fmt.Errorf("Rust has no toolchain here: make tools installs one, or: rustup default stable (%w)", err)
	}
	if _, err := os.Stat(strings.TrimSpace(string(out))); err != nil {
		return fmt.Errorf("Rust has no %s here: make tools installs it, or: rustup target add %[1]s", target)
	}
	return nil
}

// WasmTarget is what Rust's modules are built for.
const WasmTarget = "wasm32-unknown-unknown"

// NeedsRust skips the test where no crate is built for a target, and returns the path of cargo.
func NeedsRust(t testing.TB, target string) string {
	t.Helper()
	if err := Rust(target); err != nil {
		t.Skip(err)
	}
	return Needs(t, "cargo")
}

// Build makes the file out of the Go program in a folder.
func Build(t testing.TB, dir, out string) {
	t.Helper()
	if text, err := exec.Command("go", "build", "-o", out, dir).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", dir, err, text)
	}
}

// Reads makes the test's cached result depend on files that only other programs open.
func Reads(t testing.TB, patterns ...string) {
	t.Helper()
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, no files", pattern, err)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err != nil || info.IsDir() {
				continue
			}
			if _, err := os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ProcessRuns reports whether a process is there and no zombie.
func ProcessRuns(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	rest := bytes.TrimSpace(stat[bytes.LastIndexByte(stat, ')')+1:])
	return !bytes.HasPrefix(rest, []byte("Z"))
}

// Kills returns how many processes a test kills at random moments: a few, or as many as RLHOST_KILLS says.
func Kills(t testing.TB, few int) int {
	t.Helper()
	text := os.Getenv("RLHOST_KILLS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("RLHOST_KILLS=%q: want a positive number", text)
	}
	return n
}
