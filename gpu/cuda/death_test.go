package cuda_test

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
)

// What two processes share: bytes that a device writes, and what either side fills them with.
const (
	shared   = 8 << 20
	written  = 0xa5
	poisoned = 0x5a
)

// writes is the process that TestDeath kills: it has the device copy into memory that it shares, without end, and says after each round
// that it has.
func writes() error {
	memory, err := syscall.Mmap(3, 0, shared, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	table, err := named().Driver()
	if err != nil {
		return err
	}
	d, err := table.Device(0)
	if err != nil {
		return err
	}
	to, err := d.Register(memory)
	if err != nil {
		return err
	}
	from, err := d.Alloc(shared)
	if err != nil {
		return err
	}
	s, err := d.Stream(driver.Low)
	if err == nil {
		err = s.Fill(from.Address, written, shared)
	}
	for err == nil {
		for range 16 {
			if err == nil {
				err = s.Copy(to.Address, from.Address, shared)
			}
		}
		if err == nil {
			err = s.Synchronize()
		}
		fmt.Println("round")
	}
	return err
}

// writer names the process that writes, in its environment.
const writer = "RLHOST_CUDA_WRITES"

func TestMain(m *testing.M) {
	if os.Getenv(writer) == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, writes())
	os.Exit(1)
}

// changes reports whether memory that is poisoned is written to within a time.
func changes(memory []byte, within time.Duration) bool {
	want := bytes.Repeat([]byte{poisoned}, len(memory))
	copy(memory, want)
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		if !bytes.Equal(memory, want) {
			return true
		}
	}
	return false
}

// A device does not write for a killed process once the process has ended: its blocks may be another's then.
// A process that lives does write, so that the test would see it.
func TestDeath_NothingIsWrittenAfterIt(t *testing.T) {
	kills, looks := 2, 20*time.Millisecond
	if os.Getenv("RLHOST_LONG") != "" {
		kills, looks = 40, 100*time.Millisecond
	}
	fd, err := unix.MemfdCreate("shared", unix.MFD_CLOEXEC) // as arenas are
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "shared")
	defer file.Close()
	if err := file.Truncate(shared); err != nil {
		t.Fatal(err)
	}
	memory, err := syscall.Mmap(fd, 0, shared, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(memory)
	for range kills {
		dies(t, file, memory, looks)
	}
}

// dies kills a process that writes, in a moment that is drawn.
func dies(t *testing.T, file *os.File, memory []byte, looks time.Duration) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), writer+"=1")
	if os.Getenv("RLHOST_CUDA_DRIVER") == "" {
		c.Env = append(c.Env, "RLHOST_CUDA_DRIVER=fake")
	}
	c.ExtraFiles = []*os.File{file}
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for range 1 + rand.IntN(8) {
		if !lines.Scan() {
			t.Errorf("it has ended by itself: %v\n%s", c.Wait(), said.String())
			return
		}
	}
	if !changes(memory, time.Minute) {
		t.Error("a process that lives does not write")
	}
	if err := c.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err == nil {
		t.Error("it has ended by itself")
	}
	if changes(memory, looks) {
		t.Error("memory is written to after the death of its process")
	}
}
