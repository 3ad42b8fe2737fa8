package ring

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

// mainOf runs the tests or, in a child process, its task; it returns the exit status.
func mainOf(m *testing.M, task func(text string, n *notes) error) int {
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

// notes are a child's reports to its parent, in shared memory.
type notes struct {
	running atomic.Uint32
	moved   atomic.Uint64 // messages that it has put
}

// newNotes returns notes, and the segment that they are in.
func newNotes(t testing.TB) (*notes, *shm.Segment) {
	t.Helper()
	seg, err := shm.Create("notes", 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { seg.Close() })
	return notesIn(seg), seg
}

func notesIn(seg *shm.Segment) *notes { return (*notes)(unsafe.Pointer(&seg.Bytes()[0])) }

// startChild starts a process of mainOf with a task, the ring as file 3, and the notes.
func startChild(t testing.TB, task fmt.Stringer, ring int, seg *shm.Segment) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), childVariable+"="+task.String())
	cmd.Stderr = os.Stderr
	for _, fd := range []int{ring, seg.FD()} {
		f := os.NewFile(uintptr(openAgain(t, fd)), "ring")
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

// waitDead waits for a child that kills itself or is killed.
func waitDead(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	err := cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() {
		t.Fatalf("the child was to die by a signal: %v", err)
	}
}

// openAgain opens the file of a ring as another process would.
func openAgain(t testing.TB, fd int) int {
	t.Helper()
	other, err := syscall.Dup(fd)
	if err != nil {
		t.Fatal(err)
	}
	return other
}
