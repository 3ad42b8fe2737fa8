package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

func TestHostLoss_IsAnErrorAtOnce(t *testing.T) {
	path := socketPath(t)
	host := run(t, "serve", path)
	host.says(t, "up")
	s := dial(t, path)
	create(t, s, "x", 4, 64)
	push(t, s, "x", []float32{1})
	e, err := s.Read(t.Context(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() { _, err := s.Read(context.Background(), "x", 7); got <- err }()
	host.kill(t)
	if err := <-got; !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), path) {
		t.Errorf("what waited ended in %v, want ErrLost with the path", err)
	}
	if _, err := s.Pop(t.Context(), "x"); !errors.Is(err, ErrLost) {
		t.Errorf("the next operation = %v, want ErrLost", err)
	}
	if view, err := View[float32](e, 0); err != nil || view[0] != 1 {
		t.Errorf("what was being read: %v, %v, want it unharmed", view, err)
	}
	if _, err := Dial(t.Context(), path); !errors.Is(err, ErrLost) {
		t.Errorf("Dial = %v, want ErrLost", err)
	}
	again := run(t, "serve", path)
	again.says(t, "up")
	create(t, dial(t, path), "x", 4, 64)
}

func TestKilledClients_LeakNothing(t *testing.T) {
	host := serve(t)
	s := dial(t, host.Path())
	create(t, s, "x", 6, 4096)
	if _, err := s.PushBytes(t.Context(), "x", []byte("first")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p := run(t, "hold", host.Path())
		p.says(t, "holding")
		p.kill(t)
		settled(t, s, "x", 1) // this test's spare block
		if err := s.Remove(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		create(t, s, "x", 6, 4096)
		if _, err := s.PushBytes(t.Context(), "x", []byte("first")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKilledWriters_LeaveNoTornEntry(t *testing.T) {
	host := serve(t)
	s := dial(t, host.Path())
	create(t, s, "x", 8, 4096)
	for range 8 {
		p := run(t, "writer", host.Path())
		for n := range 300 {
			popWhole(t, s, "x")
			if n == 250 {
				if err := p.Process.Kill(); err != nil { // in the middle of an operation
					t.Fatal(err)
				}
				break
			}
		}
		_ = p.Wait() // killed
		for settled(t, s, "x", 0).Entries > 0 {
			popWhole(t, s, "x")
		}
	}
	settled(t, s, "x", 0)
}

func TestStoppedClient_HoldsUpNobody(t *testing.T) {
	host := serve(t)
	s := dial(t, host.Path())
	create(t, s, "x", 8, 4096)
	p := run(t, "writer", host.Path())
	e := pop(t, s, "x")
	if err := errors.Join(e.Release(), p.Process.Signal(syscall.SIGSTOP)); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 4096)
	for n := range 200 {
		drain(t, s, "x") // the writer's pushes before it stopped: else a push waits for room that only a pop makes
		stamp(data, uint64(n))
		if _, err := s.PushBytes(t.Context(), "x", data); err != nil {
			t.Fatal(err)
		}
		popWhole(t, s, "x")
	}
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for range 20 { // more than there is room for: the writer continues
		popWhole(t, s, "x")
	}
}

func TestReadLatestAndPush_EightWriters(t *testing.T) {
	host := serve(t)
	s := dial(t, host.Path())
	create(t, s, "x", 64, 4096)
	var all []*process
	for range 8 {
		all = append(all, run(t, "player", host.Path()))
	}
	for _, p := range all {
		p.ends(t)
	}
	if stat := settled(t, s, "x", 0); stat.Next != 8*400 {
		t.Errorf("there were %d pushes, want %d", stat.Next, 8*400)
	}
}

func TestIntegrity_SixteenReadersOfBatches(t *testing.T) {
	host := serve(t)
	s := dial(t, host.Path())
	data := make([]uint64, 64)
	for o := range 16 {
		name := fmt.Sprintf("o%d", o)
		create(t, s, name, 256, 512)
		for i := range uint64(256) {
			for k := range data {
				data[k] = i + uint64(o)<<32 + 8*uint64(k)
			}
			push(t, s, name, data)
		}
	}
	var all []*process
	for range 16 {
		all = append(all, run(t, "integrity", host.Path()))
	}
	for _, p := range all {
		p.ends(t)
	}
	for o := range 16 {
		settled(t, s, fmt.Sprintf("o%d", o), 1)
	}
}

func TestSixtyFourProcesses_AtOnceOnOneObject(t *testing.T) {
	host := serve(t)
	s := dial(t, host.Path())
	create(t, s, "x", 16, 4096)
	var all []*process
	for range 64 {
		all = append(all, run(t, "churn", host.Path()))
	}
	for _, p := range all {
		p.ends(t)
	}
	if stat := settled(t, s, "x", 0); stat.Next != 64*20 {
		t.Errorf("there were %d pushes, want %d", stat.Next, 64*20)
	}
}

// drain pops all entries.
func drain(t *testing.T, s *Store, name string) {
	t.Helper()
	for {
		e, err := s.Pop(NoWait(t.Context()), name)
		if errors.Is(err, ErrEmpty) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(torn(e.Bytes(0)), e.Release()); err != nil {
			t.Fatal(err)
		}
	}
}
