package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

// manager is a service manager that a training reports to.
type manager struct {
	t      *testing.T
	socket *net.UnixConn

	mu   sync.Mutex
	told []string // datagrams
}

func newManager(t *testing.T, path string) *manager {
	t.Helper()
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{t: t, socket: socket}
	var reading sync.WaitGroup
	reading.Go(m.read)
	t.Cleanup(func() {
		_ = socket.Close() // which ends the reading
		reading.Wait()
	})
	return m
}

func (m *manager) read() {
	for b := make([]byte, 4096); ; {
		n, err := m.socket.Read(b)
		if err != nil {
			return
		}
		m.mu.Lock()
		m.told = append(m.told, string(b[:n]))
		m.mu.Unlock()
	}
}

// count is how often a state was reported.
func (m *manager) count(state string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, text := range m.told {
		if strings.HasPrefix(text, state+"\nSTATUS=") {
			n++
		}
	}
	return n
}

// hears waits until a state was reported again after something was done.
func (m *manager) hears(j *subject, state string, done func()) {
	m.t.Helper()
	before := m.count(state)
	done()
	testkit.Until(m.t, "the manager hears "+state, func() bool { return m.count(state) > before }, j.output)
}

// signal sends one to the training.
func (j *subject) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := j.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// unitOf returns the keys of the unit in the page on services.
func unitOf(t *testing.T) map[string]string {
	t.Helper()
	unit := map[string]string{}
	for _, b := range blocksOf(t, "docs/how-to/service.md") {
		if b.language != "ini" {
			continue
		}
		unit["text"] = b.text
		for line := range strings.Lines(b.text) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				unit[key] = value
			}
		}
	}
	return unit
}

// TestService_TheUnitOfThePageWorks starts the command of the page's unit, as systemd would, reloads it, stalls it, and ends it.
func TestService_TheUnitOfThePageWorks(t *testing.T) {
	t.Parallel()
	w, unit := newWorkshop(t), unitOf(t)
	w.write("pipeline.toml", strings.Replace(jobOf("cartpole", "x"), `"./x"`, `"cartpole@1"`, 1)+"[component.inference]\nruntime = \"process\"\n")
	words := strings.Fields(unit["ExecStart"])
	if words[0] != "/usr/local/bin/rlhost" || words[1] != "train" {
		t.Fatalf("ExecStart is %q", words)
	}
	m := newManager(t, w.path("notify"))
	w.env = append(w.env, "NOTIFY_SOCKET="+w.path("notify"), "WATCHDOG_USEC=200000")
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // tests under nohup ignore it, and so would their children
	j := w.host(words[2:]...)
	testkit.Until(t, "the manager hears that it is ready", func() bool { return m.count("READY=1") == 1 }, j.output)
	m.hears(j, "WATCHDOG=1", func() {})
	for _, pid := range j.processes() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && pid != j.cmd.Process.Pid && strings.Contains(string(environ), "NOTIFY_SOCKET") {
			t.Errorf("process %d, which the training started, would be taken for the service", pid)
		}
	}

	w.write("pipeline.toml", w.read("pipeline.toml")+"[component.batcher]\n") // the same
	if unit["ExecReload"] != "/bin/kill -HUP $MAINPID" {
		t.Fatalf("ExecReload is %q", unit["ExecReload"])
	}
	m.hears(j, "RELOADING=1", func() { j.signal(t, syscall.SIGHUP) })
	j.says("SIGHUP: nothing to change")

	s := j.status()
	child := instance(&s, "inference").Host
	if err := exec.Command("kill", "-STOP", strings.TrimPrefix(child, "pid ")).Run(); err != nil {
		t.Fatal(err)
	}
	j.until("it stands still", func(s *control.StatusReply) bool { return s.State == control.Stalled })
	silent := m.count("WATCHDOG=1")
	<-time.After(time.Second) // five times the watchdog's wait: no sign of life is the result
	if n := m.count("WATCHDOG=1"); n > silent+1 {
		t.Errorf("%d signs of life of a run that stands still", n-silent)
	}
	m.hears(j, "WATCHDOG=1", func() {
		if err := exec.Command("kill", "-CONT", strings.TrimPrefix(child, "pid ")).Run(); err != nil {
			t.Fatal(err)
		}
	})

	m.hears(j, "STOPPING=1", func() { j.signal(t, syscall.SIGTERM) })
	j.ends(exitOK)
	j.says(`saved runs/job/0001  to go on`)
	j.nothingLeft()
}

// TestService_TheUnitOfThePageIsValid lets systemd read it, where that is installed.
func TestService_TheUnitOfThePageIsValid(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd here")
	}
	w := newWorkshop(t)
	w.write("cartpole.service", strings.NewReplacer("/usr/local/bin/rlhost", w.program, "/srv/cartpole", w.dir, "User=train\n", "").Replace(unitOf(t)["text"]))
	if out, err := exec.Command(analyze, "verify", "--recursive-errors=no", w.path("cartpole.service")).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
