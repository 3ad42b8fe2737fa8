package arena

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// crashEnv makes the test binary the process that is killed: it shares the arena whose file is its descriptor 3.
const crashEnv = "ARENA_TEST_CRASH_BLOCKS"

// The host's and the other process's part of the arena of this test.
const crashBytes = 8192

func TestMain(m *testing.M) {
	if blocks := os.Getenv(crashEnv); blocks != "" {
		if err := crashProcess(blocks); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// crashProcess does all that a process can do with an arena, until it is killed, and sends the handles of what it
// committed. It holds a block until the host has said that it claimed it.
func crashProcess(blocks string) error {
	n, err := strconv.Atoi(blocks)
	if err != nil {
		return err
	}
	l, err := planLayout(n, crashBytes)
	if err != nil {
		return err
	}
	mem, err := syscall.Mmap(3, 0, l.total, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	a := over(mem, Config{ID: 7, Name: "child"}, l, otherHolder)
	answer := make([]byte, 1)
	for i := 0; ; i++ {
		loan, err := a.Loan() // the host holds one block at most
		if err != nil {
			return err
		}
		if i%5 == 4 {
			if err := loan.Abort(); err != nil {
				return err
			}
			continue
		}
		mem := loan.Bytes()
		for at := 0; at < len(mem); at += 8 { // long enough to be killed in the middle
			stamp(mem[at:at+8], loan.Handle())
		}
		h, err := loan.Commit()
		if err != nil {
			return err
		}
		if _, err := fmt.Println(uint64(h)); err != nil {
			return err
		}
		if _, err := os.Stdin.Read(answer); err != nil {
			return err
		}
		if i%3 == 0 {
			if err := a.Retain(h); err != nil {
				return err
			}
			if err := a.Release(h); err != nil {
				return err
			}
		}
		if err := a.Release(h); err != nil {
			return err
		}
	}
}

// victim is a process that shares the arena.
type victim struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startVictim(t *testing.T, a *Arena) *victim {
	t.Helper()
	file, err := syscall.Dup(a.FD())
	ok(t, err)
	shared := os.NewFile(uintptr(file), "arena")
	defer shared.Close()
	v := &victim{cmd: exec.Command(os.Args[0], "-test.run=^$")}
	v.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", crashEnv, a.Blocks()))
	v.cmd.ExtraFiles = []*os.File{shared}
	v.cmd.Stderr = os.Stderr
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // the signal comes when the thread that started the process ends
	t.Cleanup(runtime.UnlockOSThread)
	v.in, err = v.cmd.StdinPipe()
	ok(t, err)
	out, err := v.cmd.StdoutPipe()
	ok(t, err)
	v.out = bufio.NewScanner(out)
	ok(t, v.cmd.Start())
	return v
}

// take claims the next block that the process sends, checks it, and lets the process go on.
func (v *victim) take(t *testing.T, a *Arena) bool {
	t.Helper()
	if !v.out.Scan() {
		return false
	}
	number, err := strconv.ParseUint(v.out.Text(), 10, 64)
	ok(t, err)
	h := hostabi.Handle(number)
	lease, err := a.Lease(h)
	ok(t, err)
	mem := lease.Bytes()
	for at := 0; at < len(mem); at += 8 {
		if !stamped(mem[at:at+8], h) {
			t.Fatalf("block %v is torn at byte %d", h, at)
		}
	}
	_, err = v.in.Write([]byte{0})
	ok(t, lease.Release())
	return err == nil
}

func TestSweep_AfterKillNothingIsLost(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const blocks = 4
	a := mapped(t, "crash", blocks, crashBytes)
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	var total Swept
	for round := range rounds {
		v := startVictim(t, a)
		for range 1 + random.IntN(200) {
			if !v.take(t, a) {
				t.Fatal("the process ended by itself")
			}
		}
		for range random.IntN(100_000) { // so that it dies anywhere in its cycle
		}
		ok(t, v.cmd.Process.Kill())
		for v.take(t, a) { // what it had sent is good
		}
		if err := v.cmd.Wait(); err == nil {
			t.Error("the process was not killed")
		}
		swept, err := a.Sweep(otherHolder)
		ok(t, err)
		total.Write += swept.Write
		total.Live += swept.Live
		total.Zombie += swept.Zombie
		if s := a.Stats(); s.Free != blocks || s.Others != 0 {
			t.Fatalf("round %d: after the sweep %+v, want %d free blocks", round, s, blocks)
		}
	}
	t.Logf("swept %+v", total)
	for range blocks {
		loan(t, a)
	}
}

func TestNew_HeaderTellsTheLayout(t *testing.T) {
	a := mapped(t, "header", 3, 5000)
	l, h := a.layout, a.view.header
	if h.magic.Load() != magic || h.version != layoutVersion || h.arena != 7 || h.first != 1 ||
		h.blocks != uint64(l.blocks) || h.blockBytes != uint64(l.blockBytes) || h.stride != uint64(l.stride) ||
		h.dataAt != uint64(l.dataAt) || h.hintsAt != uint64(l.hintsAt) || h.total != uint64(l.total) {
		t.Errorf("header %+v of layout %+v", h, l)
	}
	ok(t, a.Close())
}
