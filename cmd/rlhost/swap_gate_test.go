package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// gatedProgram is the name under which the test binary starts another program behind a gate: gated FD PROGRAM ARG...
const gatedProgram = "gated"

// gatedCalls are the system calls that change files. Each of them waits at the gate.
var gatedCalls = map[uint32]string{
	unix.SYS_RENAMEAT: "rename", unix.SYS_FSYNC: "fsync", unix.SYS_PWRITE64: "pwrite", unix.SYS_FTRUNCATE: "ftruncate",
	unix.SYS_UNLINKAT: "unlink", unix.SYS_MKDIRAT: "mkdir",
}

// beGated makes this process the program that its arguments name, behind a gate whose other end it sends over the
// socket that they name first.
func beGated() {
	err := passGate()
	fmt.Fprintln(os.Stderr, "gated:", err)
	os.Exit(125)
}

func passGate() error {
	socket, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the filter is that of this thread, and of all that come from it
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	gate, err := installGate()
	if err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	if err := unix.Sendmsg(socket, []byte{1}, unix.UnixRights(gate), nil, 0); err != nil {
		return err
	}
	unix.CloseOnExec(gate)
	unix.CloseOnExec(socket)
	return syscall.Exec(os.Args[2], os.Args[2:], os.Environ())
}

// installGate makes every gated call wait for who holds the descriptor that it returns.
func installGate() (int, error) {
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}} // number of the call
	for number := range gatedCalls {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: number},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, errno
	}
	return int(fd), nil
}

// gate sees every call of a program, and of its children, that changes files, before it is made.
type gate struct {
	fd int

	mu    sync.Mutex
	watch func(pid int, operation string) // called for each, which waits until it returns; nil lets all pass
}

// seccompNotice and seccompAnswer are struct seccomp_notif and seccomp_notif_resp.
type seccompNotice struct {
	id           uint64
	pid, flags   uint32
	nr, arch     uint32
	instructions uint64
	args         [6]uint64
}

type seccompAnswer struct {
	id    uint64
	value int64
	err   int32
	flags uint32
}

// on makes fn see all operations at the gate from now on.
func (g *gate) on(fn func(pid int, operation string)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watch = fn
}

// serve lets calls pass until all who could make one have ended.
func (g *gate) serve() {
	defer unix.Close(g.fd)
	for {
		poll := []unix.PollFd{{Fd: int32(g.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents != 0 {
				return
			}
			continue
		}
		var n seccompNotice
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(g.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
			continue // it has been killed meanwhile
		}
		go g.pass(n)
	}
}

func (g *gate) pass(n seccompNotice) {
	g.mu.Lock()
	watch := g.watch
	g.mu.Unlock()
	if watch != nil {
		watch(int(n.pid), n.operation())
	}
	a := seccompAnswer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(g.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a))) // a killed process needs none
}

// operation names a call and the file that it is for, as folder/name.
func (n *seccompNotice) operation() string {
	path := ""
	switch n.nr {
	case unix.SYS_RENAMEAT:
		path = textOf(int(n.pid), n.args[3])
	case unix.SYS_UNLINKAT, unix.SYS_MKDIRAT:
		path = textOf(int(n.pid), n.args[1])
	default:
		path, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.pid, n.args[0])) // of a process that has gone it is empty
	}
	return gatedCalls[n.nr] + " " + filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path))
}

// textOf reads a path from the memory of a process.
func textOf(pid int, at uint64) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return ""
	}
	defer f.Close()
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, int64(at)) // it may end with a page
	text, _, _ := strings.Cut(string(b[:n]), "\x00")
	return text
}

// gated makes a command start behind a gate. The gate is there once start has been called.
func gated(t *testing.T, w *workshop, c *exec.Cmd) (start func() *gate) {
	t.Helper()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(ends[1]), "gate")
	c.ExtraFiles = append(c.ExtraFiles, theirs)
	program := filepath.Join(w.dir, gatedProgram)
	if err := os.Link(w.program, program); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	c.Args = append([]string{program, strconv.Itoa(2 + len(c.ExtraFiles))}, c.Args...)
	c.Path = program
	return func() *gate {
		t.Helper()
		_ = theirs.Close()
		defer unix.Close(ends[0])
		data, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
		_, n, _, _, err := unix.Recvmsg(ends[0], data, rights, unix.MSG_CMSG_CLOEXEC)
		if err != nil || n == 0 {
			t.Fatalf("no gate: %v", err)
		}
		messages, err := unix.ParseSocketControlMessage(rights[:n])
		if err != nil {
			t.Fatal(err)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err != nil {
			t.Fatal(err)
		}
		g := &gate{fd: fds[0]}
		go g.serve()
		return g
	}
}

// canGate says why this system has no gates, if it has none.
func canGate(t *testing.T) {
	t.Helper()
	actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil || !strings.Contains(string(actions), "user_notif") {
		t.Skipf("this system cannot stop a program at its system calls: %v %s", err, actions)
	}
}
