package proxy

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// hostTB lets a stage run outside of a test.
type hostTB struct{ testing.TB }

func (hostTB) Helper()                      {}
func (hostTB) Cleanup(func())               {}
func (hostTB) Name() string                 { return "host" }
func (hostTB) Errorf(f string, args ...any) { fmt.Fprintf(os.Stderr, f+"\n", args...) }
func (hostTB) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (hostTB) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }

// playHost is the role of a host that is killed: a probe in a process works for it all the time.
func playHost(dir string) {
	r, err := spawn.New(spawn.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c, err := New(context.Background(), r, spawn.Program{Name: "probe", Path: path, Args: []string{"probe"}}, "probe")
	if err != nil {
		panic(err)
	}
	m := newPress(hostTB{}, c)
	fmt.Println(c.(component.Remote).Process().PID)
	for i := 0; ; i++ {
		m.turn(i)
		if i%100 == 0 {
			m.quiet()
		}
	}
}

func TestFault_KilledHostLeavesNothing(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "rl")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for range testkit.Kills(t, 3*10) / 10 {
		killHost(t, dir)
	}
	spawntest.NewRuntime(t, spawn.Options{Dir: dir})
	own := fmt.Sprintf("rlhost-plugins-%d-", os.Getpid())
	left, err := filepath.Glob(dir + "/*")
	if err != nil || len(left) != 1 || !strings.HasPrefix(filepath.Base(left[0]), own) {
		t.Errorf("in the folder of sockets: %v (%v), want only %s", left, err, own)
	}
}

// killHost starts a host, kills it while its plugin works, and looks for remains.
func killHost(t *testing.T, dir string) {
	t.Helper()
	host := exec.Command(spawntest.Self(t, "host").Path, "host", dir)
	host.Env = append(os.Environ(), native.CookieKey+"="+native.CookieValue)
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	plugin, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || plugin < 2 {
		t.Fatalf("the host says %q", line)
	}
	segments := segmentsOf(t, plugin)
	if len(segments) < 4 { // two rings, and an arena's words and blocks
		t.Errorf("the plugin has the segments %v", segments)
	}
	if err := host.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // killed
	testkit.Until(t, "the plugin ends", func() bool { return !testkit.ProcessRuns(plugin) })
	maps, err := filepath.Glob("/proc/[0-9]*/maps")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		text, _ := os.ReadFile(m) // the process may have ended
		for inode := range segments {
			if strings.Contains(string(text), inode) {
				t.Errorf("%s still has segment %s", m, inode)
			}
		}
	}
	if folders, err := filepath.Glob(dir + "/*"); err != nil || len(folders) == 0 {
		t.Errorf("the folder of the killed host: %v; there is nothing to clean up", err)
	}
}

// segmentsOf returns the memory files that a process has mapped: "inode name" as in maps.
func segmentsOf(t *testing.T, pid int) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	if err != nil {
		t.Fatal(err)
	}
	segments := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if before, name, found := strings.Cut(line, "/memfd:"); found {
			fields := strings.Fields(before)
			segments[fields[len(fields)-1]+strings.Repeat(" ", len(before)-len(strings.TrimRight(before, " ")))+"/memfd:"+strings.TrimSpace(name)] = true
		}
	}
	return segments
}
