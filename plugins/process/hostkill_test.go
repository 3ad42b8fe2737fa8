package process

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

	"github.com/rlhost/rlhost/hostabi/native"
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
	r, err := New(Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c, err := r.Component(context.Background(), Program{Name: "probe", Path: path, Args: []string{"probe"}}, "probe")
	if err != nil {
		panic(err)
	}
	m := newPress(hostTB{}, c)
	fmt.Println(r.Running()[0].PID, r.dir)
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
	for range killsWanted(t, 3*10) / 10 {
		killHost(t, dir)
	}
	r, _ := newRuntime(t, Options{Dir: dir})
	left, err := filepath.Glob(dir + "/*")
	if err != nil || len(left) != 1 || left[0] != r.dir {
		t.Errorf("in the folder of sockets: %v (%v), want only %s", left, err, r.dir)
	}
}

// killHost starts a host, kills it while its plugin works, and looks for what is left.
func killHost(t *testing.T, dir string) {
	t.Helper()
	host := exec.Command(self(t, "host").Path, "host", dir)
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
	number, folder, _ := strings.Cut(strings.TrimSpace(line), " ")
	plugin, err := strconv.Atoi(number)
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
	waitFor(t, func() bool { return !runs(plugin) })
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
	if _, err := os.Stat(folder); err != nil {
		t.Errorf("the folder of the killed host: %v; there is nothing to clean up", err)
	}
}

// segmentsOf returns the memory files that a process has mapped: "inode name" as it stands in maps.
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
