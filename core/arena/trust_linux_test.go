package arena

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/rlhost/rlhost/hostabi"
)

// scribbleAll writes into all that a process can write of an arena, again and again.
func scribbleAll(a *Arena) error {
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), 0))
	s := &scribbler{a: a, random: random}
	words, data := a.words.Bytes(), a.data.Bytes()
	fmt.Println("scribbling")
	for i := 0; ; i++ {
		switch i % 64 {
		case 0:
			for at := random.IntN(len(words)) &^ 7; at < len(words); at += 8 * (1 + random.IntN(64)) {
				binary.LittleEndian.PutUint64(words[at:], random.Uint64())
			}
		case 1:
			binary.LittleEndian.PutUint64(data[random.IntN(len(data))&^7:], random.Uint64())
		default:
			s.scribble()
		}
	}
}

func TestProcesses_WhatOneScribblesIsMendedWhenItIsDead(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	set := NewSet()
	a, err := set.Add(Config{Name: "scribbled", Blocks: 24, BlockBytes: 64})
	ok(t, err)
	rounds, mended := 6, 0
	if testing.Short() {
		rounds = 2
	}
	for round := range uint64(rounds) {
		holder, err := set.Grant()
		ok(t, err)
		p := start(t, "scribble", holder, a.Share())
		p.line()
		e := newEndure(t, a, seed+round)
		e.unstamped = true // the process writes into the blocks too
		for range 30_000 {
			e.step()
		}
		p.kill()
		swept, err := set.Sweep(holder)
		ok(t, err)
		mended += swept.Mended
		e.whole()
	}
	t.Logf("%d processes killed, %d blocks mended", rounds, mended)
	ok(t, a.Close())
}

// readWhatCannotBeWritten tries all ways to write to the blocks of a read-only arena, then reads the block whose
// handle it is given.
func readWhatCannotBeWritten(s Shared) error {
	const data = 4
	var hole int64
	tries := map[string]error{
		"ftruncate": syscall.Ftruncate(data, 0),
		"fallocate": syscall.Fallocate(data, 3 /* punch a hole, keep the size */, 0, 4096),
	}
	_, tries["mmap"] = syscall.Mmap(data, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	_, tries["pwrite"] = syscall.Pwrite(data, []byte("mine"), hole)
	if again, err := syscall.Open("/proc/self/fd/4", syscall.O_RDWR, 0); err == nil {
		_, tries["mmap of a file opened again"] = syscall.Mmap(again, 0, 4096, syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	for what, err := range tries {
		if !errors.Is(err, syscall.EPERM) {
			return fmt.Errorf("%s = %v, want EPERM", what, err)
		}
	}
	s.WordsFD, s.DataFD = 3, data
	a, err := Attach(s, 1)
	if err != nil {
		return err
	}
	if err := syscall.Mprotect(a.data.Bytes(), syscall.PROT_READ|syscall.PROT_WRITE); !errors.Is(err, syscall.EACCES) {
		return fmt.Errorf("mprotect = %v, want EACCES", err)
	}
	var h uint64
	if _, err := fmt.Scan(&h); err != nil {
		return err
	}
	if err := read(a, hostabi.Handle(h)); err != nil {
		return err
	}
	fmt.Println("read")
	return nil
}

func TestProcesses_ReadOnlyBlocksCannotBeWritten(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a, err := New(Config{ID: 7, Name: "read only", Blocks: 2, BlockBytes: 4096, ReadOnly: true})
	ok(t, err)
	l := loan(t, a)
	stampAll(l.Bytes(), l.Handle())
	h, err := l.Commit()
	ok(t, err)
	p := start(t, "read", 1, a.Share())
	fmt.Fprintln(p.in, uint64(h))
	if got := p.line(); got != "read" {
		t.Errorf("the reader said %q", got)
	}
	ok(t, p.cmd.Wait())
	ok(t, a.Release(h))
	ok(t, a.Close())
}

// beAStranger becomes another user and tries to open its parent's arena by the parent's descriptors.
func beAStranger(s Shared) error {
	for fd := 3; fd <= 4; fd++ {
		if err := syscall.Close(fd); err != nil {
			return err
		}
	}
	const nobody = 65534
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)); err != nil {
		return err
	}
	parent := os.Getppid()
	for _, fd := range []int{s.WordsFD, s.DataFD} {
		for _, flags := range []int{syscall.O_RDONLY, syscall.O_RDWR} {
			if f, err := syscall.Open(fmt.Sprintf("/proc/%d/fd/%d", parent, fd), flags, 0); err == nil {
				return fmt.Errorf("file %d of the host could be opened as %d", fd, f)
			}
		}
	}
	if _, err := os.ReadDir(fmt.Sprintf("/proc/%d/map_files", parent)); err == nil {
		return errors.New("the host's mapped files could be listed")
	}
	if err := stealByPidfd(parent, s.DataFD); err != nil {
		return err
	}
	fmt.Println("kept_out")
	return nil
}

// stealByPidfd asks the kernel for a file and for the memory of another process.
func stealByPidfd(pid, fd int) error {
	const pidfdOpen, pidfdGetfd, vmReadv = 434, 438, 310 // amd64
	pidfd, _, errno := syscall.Syscall(pidfdOpen, uintptr(pid), 0, 0)
	if errno != 0 {
		return fmt.Errorf("pidfd_open: %w", errno)
	}
	if got, _, errno := syscall.Syscall(pidfdGetfd, pidfd, uintptr(fd), 0); errno == 0 {
		return fmt.Errorf("pidfd_getfd gave file %d of the host as %d", fd, got)
	}
	if runtime.GOARCH != "amd64" {
		return nil
	}
	var b [8]byte
	v := syscall.Iovec{Base: &b[0], Len: 8}
	if _, _, errno := syscall.Syscall6(vmReadv, uintptr(pid), uintptr(unsafe.Pointer(&v)), 1, uintptr(unsafe.Pointer(&v)), 1, 0); errno != syscall.EPERM {
		return fmt.Errorf("process_vm_readv: %v, want EPERM", errno)
	}
	return nil
}

func TestProcesses_AnotherUserCanNeitherOpenNorMap(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	a := mapped(t, "not for strangers", 2, 4096)
	p := start(t, "stranger", 1, a.Share())
	said, err := io.ReadAll(p.out)
	ok(t, err)
	if got := strings.TrimSpace(string(said)); got != "kept_out" {
		t.Errorf("the stranger said %q", got)
	}
	ok(t, p.cmd.Wait())
	ok(t, a.Close())
}
