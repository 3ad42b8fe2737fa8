package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/queue"
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

const payload = 16

// pill tells a consumer to stop.
const pill = ^uint64(0)

// task is the task of a child: its arguments.
type task struct {
	kind      string // queue, messages
	role      string // put, get, echo
	me        int    // its number within its role
	consumers int
	each      uint64 // messages of a producer
	batch     int
}

func (t task) args() []string {
	return []string{"child", t.kind, t.role, strconv.Itoa(t.me), strconv.Itoa(t.consumers),
		strconv.FormatUint(t.each, 10), strconv.Itoa(t.batch)}
}

func parseTask(args []string) (t task, err error) {
	t.kind, t.role = args[0], args[1]
	_, err = fmt.Sscan(args[2]+" "+args[3]+" "+args[4]+" "+args[5], &t.me, &t.consumers, &t.each, &t.batch)
	return t, err
}

// child is the life of a child process.
func child(args []string) error {
	t, err := parseTask(args)
	if err != nil {
		return err
	}
	seg, err := shm.Open(fdBoard, shm.ReadWrite)
	if err != nil {
		return err
	}
	b := boardOf(seg)
	switch t.kind + " " + t.role {
	case "messages echo":
		return echo(t.batch > 0)
	case "queue put", "queue get":
		q, err := queue.Open(fdRing)
		if err != nil {
			return err
		}
		if t.role == "put" {
			return produce(b, q.As(uint16(t.me)), t)
		}
		return consume(b, q.As(uint16(maxChildren+t.me)), t)
	}
	r, err := ring.Open(fdRing)
	if err != nil {
		return err
	}
	if t.role == "put" {
		produceMessages(b, r, t)
	} else {
		consumeMessages(b, r, t)
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

func produce(b *board, end *queue.End, t task) error {
	items := queue.Items(t.batch, payload)
	for i := range items {
		items[i].Payload = items[i].Payload[:payload]
	}
	waitForGate(b)
	for sent := uint64(0); sent < t.each; {
		n := min(uint64(t.batch), t.each-sent)
		for i := range n {
			sent++
			binary.LittleEndian.PutUint64(items[i].Payload, sent)
			binary.LittleEndian.PutUint64(items[i].Payload[8:], sent)
		}
		var err error
		if t.batch == 1 {
			err = end.Put(items[0], -1)
		} else {
			err = end.PutMany(items[:n], -1)
		}
		if err != nil {
			return err
		}
	}
	if b.producing.Add(-1) > 0 {
		return nil
	}
	return putPills(end, t.consumers)
}

func putPills(end *queue.End, n int) error {
	for range n {
		data := binary.LittleEndian.AppendUint64(make([]byte, 0, payload), pill)
		if err := end.Put(queue.Item{Payload: data[:payload]}, -1); err != nil {
			return err
		}
	}
	return nil
}

func consume(b *board, end *queue.End, t task) error {
	items := queue.Items(t.batch, payload)
	buf := make([]byte, payload)
	out := &b.child[t.me]
	waitForGate(b)
	sum, count, pills := uint64(0), uint64(0), 0
	for pills == 0 {
		n := 1
		var err error
		if t.batch == 1 {
			items[0], err = end.Get(buf, -1)
		} else {
			n, err = end.GetMany(items, -1)
		}
		if err != nil {
			return err
		}
		for i := range items[:n] {
			v := binary.LittleEndian.Uint64(items[i].Payload)
			if v == pill {
				pills++
				continue
			}
			sum += v
			count++
		}
	}
	*out = outcome{now(), sum, count}
	return putPills(end, pills-1)
}

func produceMessages(b *board, r *ring.SPSC, t task) {
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

func consumeMessages(b *board, r *ring.SPSC, t task) {
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
				b.child[t.me] = outcome{now(), sum, count}
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
