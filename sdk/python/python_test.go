package python

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// interpreter returns the Python that has the package in its present state.
func interpreter(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../.venv/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, "-I", "-c", "import rlhost, grpc, gymnasium, pettingzoo, imageio_ffmpeg, ale_py").CombinedOutput(); err != nil {
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
	unittest(t, 18*time.Minute, "discover", "-p", "test_*.py")
}

// TestLearner_SaysWhatItsPortsCarry: the package's own learner declares the schemas of rlhost's payloads that it was written for.
func TestLearner_SaysWhatItsPortsCarry(t *testing.T) {
	out, err := exec.Command(interpreter(t), "-I", "-c", "import rlhost\nfor p in rlhost.Learner.signals + rlhost.Learner.slots: print(p.payload, p.schema)").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := ""
	for _, name := range []string{component.PayloadWeights, component.PayloadStats, component.PayloadDataset} {
		payload := component.PayloadOf(name)
		want += fmt.Sprintln(name, payload.Schema())
	}
	if string(out) != want {
		t.Errorf("ports of rlhost.Learner:\n%swant:\n%s", out, want)
	}
}

// TestKill_ClientsOfAChannel kills as many as RLHOST_KILLS says; the tests above kill a few.
func TestKill_ClientsOfAChannel(t *testing.T) {
	kills := os.Getenv("RLHOST_KILLS")
	if kills == "" {
		t.Skip("make test-kills")
	}
	n, err := strconv.Atoi(kills)
	if err != nil {
		t.Fatalf("RLHOST_KILLS=%q: %v", kills, err)
	}
	unittest(t, time.Minute+time.Duration(n)*time.Second, "-v", "test_channel_kills")
}

// TestPeers_FasterFifosOwnTests runs them where RLHOST_PEERS says that what takes minutes is wanted.
func TestPeers_FasterFifosOwnTests(t *testing.T) {
	if os.Getenv("RLHOST_PEERS") == "" {
		t.Skip("make test-peers")
	}
	unittest(t, 5*time.Minute, "-v", "theirs_of_faster_fifo")
}

// unittest runs tests in Python, with the program in PATH.
func unittest(t *testing.T, limit time.Duration, args ...string) {
	t.Helper()
	programs := t.TempDir()
	testkit.Build(t, "../../cmd/rlhost", filepath.Join(programs, "rlhost"))
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := exec.CommandContext(ctx, interpreter(t), append([]string{"-m", "unittest"}, args...)...)
	c.Dir, c.Env = "tests", append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "GRPC_VERBOSITY=ERROR",
		"PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
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
		Slow: true,
	})
}
