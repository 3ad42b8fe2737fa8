package python

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// interpreter returns the Python that has the package, as it is now.
func interpreter(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, "-I", "-c", "import rlhost, grpc, gymnasium").CombinedOutput(); err != nil {
		t.Skipf("run make tools: %v %s", err, out)
	}
	out, err := exec.Command(path, "installed.py").CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("the package in .venv is not the one of this folder: run make tools\n%s", out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPython_OwnTests runs the tests in Python.
func TestPython_OwnTests(t *testing.T) {
	programs := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(programs, "rlhost"), "../../cmd/rlhost").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, interpreter(t), "-m", "unittest", "discover", "-p", "test_*.py")
	c.Dir, c.Env = "tests", append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "GRPC_VERBOSITY=ERROR",
		"PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestRuntime_PluginsInPython runs what all runtimes promise with the probe in Python.
func TestRuntime_PluginsInPython(t *testing.T) {
	program := spawn.Program{Name: "probe", Interpreter: []string{interpreter(t)}, Path: "tests/probe.py"}
	r, err := spawn.New(spawn.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	plugintest.TestRuntime(t, plugintest.RuntimeHarness{
		New: func(t testing.TB) component.Component {
			c, err := proxy.New(context.Background(), r, program, "probe")
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Kill:   kill,
		Settle: settle,
		Slow:   true,
	})
}

// settle waits until a process has slept for some milliseconds, which it does when it has told all that it has to
// tell, or a second if it does not. It sleeps for shorter times while its threads wait for each other.
func settle(t testing.TB, name string) {
	t.Helper()
	asleep := 0
	for end := time.Now().Add(time.Second); asleep < 5 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		asleep++
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pidOf(t, name)))
		if _, state, ok := bytes.Cut(stat, []byte(") ")); err != nil || !ok || state[0] != 'S' {
			asleep = 0
		}
	}
}

// kill kills the process of a component and returns when it is dead.
func kill(t testing.TB, name string) {
	t.Helper()
	fd, err := unix.PidfdOpen(pidOf(t, name), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10000); err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
}

// pidOf returns the process of a component, which may just be starting again.
func pidOf(t testing.TB, name string) int {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		list, err := spawn.Find(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range list {
			if found.Component == name {
				return found.PID
			}
		}
	}
	t.Fatalf("%s has no process", name)
	return 0
}
