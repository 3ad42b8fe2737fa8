package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// Files that a child inherits.
const (
	fdBoard = 3
	fdRing  = 4
	fdBack  = 5 // of round trips
)

// pill tells a consumer to stop.
const pill = ^uint64(0)

// task is the task of a child: its arguments.
type task struct {
	role  string // put, get, echo
	each  uint64 // messages to put
	batch int    // of an echo: 0 if it does not spin
}

func (t task) args() []string {
	return []string{"child", t.role, strconv.FormatUint(t.each, 10), strconv.Itoa(t.batch)}
}

func parseTask(args []string) (t task, err error) {
	t.role = args[0]
	_, err = fmt.Sscan(args[1]+" "+args[2], &t.each, &t.batch)
	return t, err
}

// child is the life of a child process.
func child(args []string) error {
	t, err := parseTask(args)
	if err != nil {
		return err
	}
	if t.role == "echo" {
		return echo(t.batch > 0)
	}
	seg, err := shm.Open(fdBoard, shm.ReadWrite)
	if err != nil {
		return err
	}
	r, err := ring.Open(fdRing)
	if err != nil {
		return err
	}
	if t.role == "put" {
		produce(boardOf(seg), r, t)
	} else {
		consume(boardOf(seg), r, t)
	}
	return nil
}

// waitForGate returns when all processes are there.
func waitForGate(b *board) {
	b.ready.Add(1)
	for b.gate.Load() == 0 {
		shm.Wait(&b.gate, 0, -1)
	}
}

func produce(b *board, r *ring.SPSC, t task) {
	ms := make([]hostabi.Message, t.batch)
	waitForGate(b)
	for sent := uint64(0); sent < t.each; {
		n := min(uint64(t.batch), t.each-sent)
		for i := range n {
			sent++
			ms[i].Inline = [2]uint64{sent, sent}
		}
		putAll(r, ms[:n])
	}
	ms[0].Inline[0] = pill
	putAll(r, ms[:1])
}

func putAll(r *ring.SPSC, ms []hostabi.Message) {
	for {
		ms = ms[r.Put(ms):]
		if len(ms) == 0 {
			return
		}
		r.WaitRoom(-1)
	}
}

func consume(b *board, r *ring.SPSC, t task) {
	ms := make([]hostabi.Message, t.batch)
	waitForGate(b)
	sum, count := uint64(0), uint64(0)
	for {
		n := r.Get(ms)
		if n == 0 {
			r.Wait(-1)
			continue
		}
		for i := range ms[:n] {
			if ms[i].Inline[0] == pill {
				b.got = outcome{now(), sum, count}
				return
			}
			sum += ms[i].Inline[0]
			count++
		}
	}
}

// echo sends its messages back until the ring is shut.
func echo(spin bool) error {
	in, err := ring.Open(fdRing)
	if err != nil {
		return err
	}
	out, err := ring.Open(fdBack)
	if err != nil {
		return err
	}
	in.SetSpin(spin)
	out.SetSpin(spin)
	var one [1]hostabi.Message
	for {
		if in.Get(one[:]) == 1 {
			putAll(out, one[:])
		} else if !in.Wait(time.Second) && in.IsShut() {
			return nil
		}
	}
}

// duplicate returns another file for the same memory.
func duplicate(fd int) (*os.File, error) {
	other, err := syscall.Dup(fd)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(other), "ring"), nil
}
