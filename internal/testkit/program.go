package testkit

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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
