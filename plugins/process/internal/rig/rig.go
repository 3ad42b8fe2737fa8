// Package rig is what the tests of native plugins share: the test binary as a plugin, one without any SDK, and how to
// wait for what processes do.
package rig

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi/native"
)

// Main is for TestMain: it makes the test binary a plugin as well, which play is told of by its arguments. end runs
// after the tests.
func Main(m *testing.M, play func(role string, args []string), end func()) {
	if os.Getenv(native.CookieKey) != "" && len(os.Args) > 1 {
		play(os.Args[1], os.Args[2:])
		os.Exit(0)
	}
	code := m.Run()
	end()
	os.Exit(code)
}

// Self returns the path of the test binary.
func Self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Log is a log that tests can read while others write to it.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *Log) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *Log) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Runs reports whether a process is there and no zombie.
func Runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	rest := strings.TrimSpace(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return !strings.HasPrefix(rest, "Z")
}

// Until waits until cond holds.
func Until(t testing.TB, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatal("what the test waits for does not happen")
		}
		time.Sleep(time.Millisecond)
	}
}

// Kills is how many kills the long tests make: RLHOST_KILLS, or few.
func Kills(t testing.TB, few int) int {
	t.Helper()
	text := os.Getenv("RLHOST_KILLS")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("RLHOST_KILLS: %v", err)
	}
	return n
}

// Gymnasium returns the Python that runs the plugin for environments of Gymnasium, and its arguments. It skips the test
// where there is none.
func Gymnasium(t testing.TB) (python string, args []string) {
	t.Helper()
	python, err := filepath.Abs("../../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		t.Skip("no Python environment: run make tools")
	}
	if out, err := exec.Command(python, "-c", "import rlhost.gymnasium").CombinedOutput(); err != nil {
		t.Fatalf("the package is not in .venv: run make tools\n%s", out)
	}
	return python, []string{"-m", "rlhost.gymnasium"}
}
