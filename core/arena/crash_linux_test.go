package arena

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// crashEnv makes the test binary the process that is killed: it shares the arena whose files are its descriptors 3
// and 4.
const crashEnv = "ARENA_TEST_CRASH_BLOCKS"

const crashBytes = 4096

// Where the other process waits to be killed; the host says so with the byte that lets it go on.
const (
	crashAnywhere byte = iota // it does not wait
	crashWriting
	crashCommitted // and the handle is not sent
	crashShared    // the handle is sent, and claimed by the host
	crashRevoked
	crashFree
	crashPoints
)

func TestMain(m *testing.M) {
	if blocks := os.Getenv(crashEnv); blocks != "" {
		if err := crashProcess(blocks); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// crashing is the process that is killed.
type crashing struct {
	a  *Arena
	at byte
}

// crashProcess does all that a process can do with an arena, until it is killed.
func crashProcess(blocks string) error {
	n, err := strconv.Atoi(blocks)
	if err != nil {
		return err
	}
	a, err := Attach(Shared{ID: 7, Name: "crashing", Blocks: n, BlockBytes: crashBytes, WordsFD: 3, DataFD: 4}, otherHolder)
	if err != nil {
		return err
	}
	c := &crashing{a: a}
	for err == nil {
		err = c.cycle()
	}
	return err
}

// wait never returns at the point where the process is to be killed.
func (c *crashing) wait(point byte) {
	if c.at == point {
		fmt.Println(0)
		for {
			_ = syscall.Pause() // any signal but the fatal one brings it back
		}
	}
}

// cycle writes one block in vain and one to be sent, which it holds until the host has claimed it too.
func (c *crashing) cycle() error {
	c.wait(crashFree)
	for range 2 {
		l, err := c.a.Loan() // the host holds one block at most
		if err != nil {
			return err
		}
		stampAll(l.Bytes()[:crashBytes/2], l.Handle())
		c.wait(crashWriting)
		if err := l.Abort(); err != nil {
			return err
		}
	}
	l, err := c.a.Loan()
	if err != nil {
		return err
	}
	stampAll(l.Bytes(), l.Handle())
	h, err := l.Commit()
	if err != nil {
		return err
	}
	c.wait(crashCommitted)
	if _, err := fmt.Println(uint64(h)); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(os.Stdin, answer[:]); err != nil {
		return err
	}
	c.at = answer[0]
	c.wait(crashShared)
	if err := c.a.Revoke(h); err != nil {
		return err
	}
	c.wait(crashRevoked)
	if !stampedAll(c.a.bytes(h.Block()), h) {
		return fmt.Errorf("block %v changed while it was held", h)
	}
	return c.a.Release(h)
}

func stampAll(mem []byte, h hostabi.Handle) {
	for ; len(mem) >= 8; mem = mem[8:] {
		stamp(mem[:8], h)
	}
}

func stampedAll(mem []byte, h hostabi.Handle) bool {
	for ; len(mem) >= 8; mem = mem[8:] {
		if !stamped(mem[:8], h) {
			return false
		}
	}
	return true
}

// victim is the host's side of that process.
type victim struct {
	t   *testing.T
	a   *Arena
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startVictim(t *testing.T, a *Arena) *victim {
	t.Helper()
	files := sharedFiles(t, a)
	v := &victim{t: t, a: a, cmd: exec.Command(os.Args[0], "-test.run=^$")}
	v.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", crashEnv, a.Blocks()))
	v.cmd.ExtraFiles = files
	v.cmd.Stderr = os.Stderr
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := v.cmd.StdinPipe()
	ok(t, err)
	v.in = in
	out, err := v.cmd.StdoutPipe()
	ok(t, err)
	v.out = bufio.NewScanner(out)
	ok(t, v.cmd.Start())
	return v
}

// sharedFiles returns duplicates of an arena's files for the next process, which are closed when the test ends.
func sharedFiles(t *testing.T, a *Arena) []*os.File {
	t.Helper()
	s := a.Share()
	var files []*os.File
	for _, fd := range []int{s.WordsFD, s.DataFD} {
		fd, err := syscall.Dup(fd)
		ok(t, err)
		syscall.CloseOnExec(fd)
		file := os.NewFile(uintptr(fd), "arena")
		t.Cleanup(func() { _ = file.Close() })
		files = append(files, file)
	}
	return files
}

// next returns the handle that the process sends, 0 when it waits to be killed, and false when it is dead.
func (v *victim) next() (hostabi.Handle, bool) {
	v.t.Helper()
	if !v.out.Scan() {
		return 0, false
	}
	number, err := strconv.ParseUint(v.out.Text(), 10, 64)
	ok(v.t, err)
	return hostabi.Handle(number), true
}

// take claims a block that was sent, checks it and lets the process go on.
func (v *victim) take(h hostabi.Handle, answer byte) {
	v.t.Helper()
	lease, err := v.a.Lease(h)
	ok(v.t, err)
	if !stampedAll(lease.Bytes(), h) {
		v.t.Fatalf("block %v is torn", h)
	}
	_, _ = v.in.Write([]byte{answer}) // a dead process reads nothing
	ok(v.t, lease.Release())
}

// kill ends the process after some cycles, at the given point, and claims what it still had sent.
func (v *victim) kill(point byte, cycles int) {
	v.t.Helper()
	for range cycles {
		h, alive := v.next()
		if !alive {
			v.t.Fatal("the process ended by itself")
		}
		v.take(h, crashAnywhere)
	}
	for h, alive := v.next(); alive && h != 0; h, alive = v.next() {
		v.take(h, point)
		if point == crashAnywhere {
			break
		}
	}
	ok(v.t, v.cmd.Process.Kill())
	for h, alive := v.next(); alive; h, alive = v.next() {
		v.take(h, crashAnywhere)
	}
	if err := v.cmd.Wait(); err == nil {
		v.t.Error("the process was not killed")
	}
}

func TestSweep_AfterKillNothingIsLost(t *testing.T) {
	runtime.LockOSThread() // the process is killed when the thread that started it ends
	defer runtime.UnlockOSThread()
	const blocks = 4
	a := mapped(t, "crash", blocks, crashBytes)
	want := map[byte]Swept{
		crashWriting:   {Write: 1, Freed: 1},
		crashCommitted: {Live: 1, Freed: 1},
		crashShared:    {Live: 1, Freed: 1},
		crashRevoked:   {Zombie: 1, Freed: 1},
		crashFree:      {},
	}
	for round := range 3 * int(crashPoints) {
		point := byte(round) % crashPoints
		startVictim(t, a).kill(point, 1+round)
		swept, err := a.Sweep(otherHolder)
		ok(t, err)
		if w, sure := want[point]; sure && swept != w {
			t.Errorf("killed at point %d: swept %+v, want %+v", point, swept, w)
		}
		if s := a.Stats(); s.Free != blocks || s.Others != 0 {
			t.Fatalf("killed at point %d: after the sweep %+v, want %d free blocks", point, s, blocks)
		}
	}
	for range blocks {
		ok(t, loan(t, a).Abort())
	}
	ok(t, a.Close())
}
