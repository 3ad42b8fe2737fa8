package ctest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/hostabi"
)

// patience bounds a test's wait for another process.
const patience = 30 * time.Second

// peer is the program in C at the other end.
type peer struct {
	cmd      *exec.Cmd
	out, err bytes.Buffer
}

// start runs the program with duplicates of files, from 3 on.
func start(t testing.TB, program string, fds []int, args ...string) *peer {
	t.Helper()
	p := &peer{cmd: exec.Command(program, args...)}
	for _, fd := range fds {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(own), "shared")
		defer f.Close()
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, f)
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// wait waits for the program to end and returns its output.
func (p *peer) wait(t testing.TB) string {
	t.Helper()
	timer := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("%v: %v\n%s", p.cmd.Args[1:], err, p.err.String())
	}
	return p.out.String()
}

func numbered(i uint64) hostabi.Message {
	return hostabi.Message{Sequence: i, Handle: hostabi.Handle(3 * i), Kind: uint16(i), T: ^uint32(i), Inline: [2]uint64{i * i, ^i}}
}

func TestMessages_TravelBetweenGoAndC(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/interop.c")
	const n = 50_000
	for _, batch := range []int{1, 17, 64} {
		t.Run(fmt.Sprintf("to C by %d", batch), func(t *testing.T) {
			r := newMessages(t)
			p := start(t, program, []int{r.FD()}, "messages-get", strconv.Itoa(n), "32")
			ms := make([]hostabi.Message, batch)
			for i := uint64(0); i < n; {
				k := min(uint64(batch), n-i)
				for j := range k {
					ms[j] = numbered(i + j)
				}
				put := r.Put(ms[:k])
				i += uint64(put)
				if put == 0 && !r.WaitRoom(patience) {
					t.Fatal("no room")
				}
			}
			p.wait(t)
		})
		t.Run(fmt.Sprintf("from C by %d", batch), func(t *testing.T) {
			r := newMessages(t)
			p := start(t, program, []int{r.FD()}, "messages-put", strconv.Itoa(n), strconv.Itoa(batch))
			ms := make([]hostabi.Message, 32)
			for i := uint64(0); i < n; {
				if !r.Wait(patience) {
					t.Fatal("no message")
				}
				for _, m := range ms[:r.Get(ms)] {
					if want := numbered(i); m != want {
						t.Fatalf("message %d is %+v, want %+v", i, m, want)
					}
					i++
				}
			}
			p.wait(t)
		})
	}
}

func newMessages(t testing.TB) *ring.SPSC {
	t.Helper()
	r, err := ring.New("test", 256)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestMessages_EndWhenTheRingIsShut(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/interop.c")
	in, out := newMessages(t), newMessages(t)
	p := start(t, program, []int{in.FD(), out.FD()}, "echo")
	got := make([]hostabi.Message, 1)
	for i := range uint64(1000) {
		in.Put([]hostabi.Message{numbered(i)})
		if !out.Wait(patience) || out.Get(got) != 1 || got[0] != numbered(i) {
			t.Fatalf("echo %d is %+v", i, got[0])
		}
	}
	in.Shut()
	p.wait(t)
}

// TestQueue_OfProcesses runs the checks of testdata/queue.c: nothing is lost between processes, and a killed one
// leaves nothing half done.
func TestQueue_OfProcesses(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/queue.c")
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
