package fifotest

import (
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/rlhost/rlhost/core/shm"
)

// childVariable holds the task of a child process of the tests.
const childVariable = "RLHOST_RING_CHILD"

// Main runs the tests or, in a child process, its task; it returns the exit status.
func Main(m *testing.M, task func(text string, n *Notes) error) int {
	text := os.Getenv(childVariable)
	if text == "" {
		return m.Run()
	}
	seg, err := shm.Open(4, shm.ReadWrite)
	if err == nil {
		err = task(text, notesIn(seg))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

// Notes are a child's reports to its parent, in shared memory.
type Notes struct {
	Running atomic.Uint32
	Moved   atomic.Uint64 // messages that it has put or got
	Sum     atomic.Uint64 // of the items got
	Wrong   atomic.Uint64 // messages out of order or torn
}

// NewNotes returns notes, and the segment that they are in.
func NewNotes(t testing.TB) (*Notes, *shm.Segment) {
	t.Helper()
	seg, err := shm.Create("notes", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seg.Close() })
	return notesIn(seg), seg
}

func notesIn(seg *shm.Segment) *Notes { return (*Notes)(unsafe.Pointer(&seg.Bytes()[0])) }

// StartChild starts a process of Main with a task, the ring as file 3, and the notes.
func StartChild(t testing.TB, task fmt.Stringer, ring int, seg *shm.Segment) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"="+task.String())
	cmd.Stderr = os.Stderr
	for _, fd := range []int{ring, seg.FD()} {
		f := os.NewFile(uintptr(OpenAgain(t, fd)), "ring")
		defer f.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait()
	})
	return cmd
}

// WaitDead waits for a child that kills itself or is killed.
func WaitDead(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	err := cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Fatalf("the child was to die by a signal: %v", err)
	}
}

// OpenAgain opens the file of a ring as another process would.
func OpenAgain(t testing.TB, fd int) int {
	t.Helper()
	other, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return other
}
