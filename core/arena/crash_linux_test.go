package arena

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

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

// crashing is the process that is killed.
type crashing struct {
	a  *Arena
	at byte
}

// crashLoop does all that a process can do with an arena, until it is killed.
func crashLoop(a *Arena) (err error) {
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
	*process
	lines *bufio.Scanner
}

func startVictim(t *testing.T, a *Arena) *victim {
	t.Helper()
	p := start(t, "crash", otherHolder, a.Share())
	return &victim{p, bufio.NewScanner(p.out)}
}

// next returns the handle that the process sends, 0 when it waits to be killed, and false when it is dead.
func (v *victim) next() (hostabi.Handle, bool) {
	v.t.Helper()
	if !v.lines.Scan() {
		return 0, false
	}
	number, err := strconv.ParseUint(v.lines.Text(), 10, 64)
	ok(v.t, err)
	return hostabi.Handle(number), true
}

// take claims a block that was sent, checks it and lets the process go on.
func (v *victim) take(a *Arena, h hostabi.Handle, answer byte) {
	v.t.Helper()
	lease, err := a.Lease(h)
	ok(v.t, err)
	if !stampedAll(lease.Bytes(), h) {
		v.t.Fatalf("block %v is torn", h)
	}
	_, _ = v.in.Write([]byte{answer}) // a dead process reads nothing
	ok(v.t, lease.Release())
}

// kill ends the process after some cycles, at the given point, and claims what it still had sent.
func (v *victim) kill(a *Arena, point byte, cycles int) {
	v.t.Helper()
	for range cycles {
		h, alive := v.next()
		if !alive {
			v.t.Fatal("the process ended by itself")
		}
		v.take(a, h, crashAnywhere)
	}
	for h, alive := v.next(); alive && h != 0; h, alive = v.next() {
		v.take(a, h, point)
		if point == crashAnywhere {
			break
		}
	}
	ok(v.t, v.cmd.Process.Kill())
	for h, alive := v.next(); alive; h, alive = v.next() {
		v.take(a, h, crashAnywhere)
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
		startVictim(t, a).kill(a, point, 1+round)
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
