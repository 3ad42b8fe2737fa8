package cluster

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
)

// twoEnds returns the lines of a host over one link and of the owner over another. Each line is answered by serve.
func twoEnds(t *testing.T, host, owner *Link, serve func(service string, l *Line)) (there, here *Lines) {
	t.Helper()
	o := LinesOptions{Key: "key", Number: 1, Own: 1, Other: 1, Largest: 8 << 20}
	accepting := o
	accepting.Accept = serve
	here, err := owner.Lines(accepting)
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Pulse(t.Context()); err != nil {
		t.Fatal(err)
	}
	if there, err = host.Lines(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { there.Close(); here.Close() })
	return there, here
}

// echo sends back what comes.
func echo(_ string, l *Line) {
	for {
		m, err := l.Receive()
		if err != nil {
			_ = l.Close()
			return
		}
		_ = l.Send(m) // a lost line ends Receive too
	}
}

// Messages of all sizes come back once and in their order, on many lines, while the cable is cut again and again.
func TestLines_BringEachMessageOnceAcrossCuts(t *testing.T) {
	s := serve(t)
	cable := testkit.NewCable(t, s.Address())
	there, _ := twoEnds(t, connect(t, LinkOptions{URL: "nats://" + cable.Address()}), connect(t, LinkOptions{Server: s}), echo)
	done := make(chan struct{})
	var cutting sync.WaitGroup
	cutting.Go(func() {
		for range 4 {
			select {
			case <-done:
			case <-time.After(50 * time.Millisecond):
			}
			cable.Cut()
			cable.Mend()
		}
	})
	seed := rand.Uint64()
	var lines sync.WaitGroup
	for n := range 4 {
		l, err := there.Open("echo")
		if err != nil {
			t.Fatal(err)
		}
		lines.Go(func() { throughEcho(t, l, seed+uint64(n)) })
	}
	lines.Wait()
	close(done)
	cutting.Wait()
}

func throughEcho(t *testing.T, l *Line, seed uint64) {
	const messages = 60
	sizes := []int{0, 1, 100, lineFrame - 1, lineFrame, lineFrame + 1, 3 * lineFrame, 5 << 20}
	size := func(r *rand.Rand) int { return sizes[r.IntN(len(sizes))] }
	r := rand.New(rand.NewPCG(seed, 0))
	go func() {
		for n := range uint64(messages) {
			m := bytes.Repeat([]byte{byte(n)}, size(r))
			if err := l.Send(append(m, binary.LittleEndian.AppendUint64(nil, n)...)); err != nil {
				t.Errorf("seed %d, message %d: %v", seed, n, err)
				return
			}
		}
	}()
	want := rand.New(rand.NewPCG(seed, 0))
	for n := range uint64(messages) {
		m, err := l.Receive()
		if err != nil || len(m) != size(want)+8 || binary.LittleEndian.Uint64(m[len(m)-8:]) != n || m[0] != byte(n) {
			t.Errorf("seed %d, message %d: %d bytes, %v", seed, n, len(m), err)
			return
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A line whose receiver takes nothing holds up its own sender, and no other line.
func TestLines_AreHeldUpByThemselvesAlone(t *testing.T) {
	s := serve(t)
	release := make(chan struct{})
	there, _ := twoEnds(t, connect(t, LinkOptions{URL: "nats://" + s.Address()}), connect(t, LinkOptions{Server: s}), func(service string, l *Line) {
		if service == "slow" {
			<-release
		}
		echo(service, l)
	})
	slow, err := there.Open("slow")
	if err != nil {
		t.Fatal(err)
	}
	const messages = 2 * lineCredit >> 20
	sent := make(chan int, messages)
	go func() {
		for n := range messages {
			if slow.Send(make([]byte, 1<<20)) != nil {
				return
			}
			sent <- n
		}
	}()
	quick, err := there.Open("quick")
	if err != nil {
		t.Fatal(err)
	}
	throughEcho(t, quick, 1)
	if len(sent) >= messages/2 {
		t.Errorf("%d MB were sent to a line whose receiver takes nothing", len(sent))
	}
	close(release)
	for range messages {
		if m, err := slow.Receive(); err != nil || len(m) != 1<<20 {
			t.Fatalf("%d bytes, %v", len(m), err)
		}
	}
}

// What was sent before a line is closed arrives; then both ends say that it is over. A host that is gone ends the lines of the owner.
func TestLines_End(t *testing.T) {
	s := serve(t)
	got := make(chan error, 8)
	there, here := twoEnds(t, connect(t, LinkOptions{URL: "nats://" + s.Address()}), connect(t, LinkOptions{Server: s}), func(_ string, l *Line) {
		for {
			if _, err := l.Receive(); err != nil {
				got <- errors.Join(err, l.Close())
				return
			}
			got <- nil
		}
	})
	l, err := there.Open("once")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Send([]byte("last words")), l.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Errorf("what was sent before the end: %v", err)
	}
	if err := <-got; !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
	if err := l.Send(nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Send after Close: %v", err)
	}
	if l, err = there.Open("again"); err != nil {
		t.Fatal(err)
	}
	if err := l.Send([]byte("here")); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	here.Close()
	if err := <-got; !errors.Is(err, ErrLines) {
		t.Errorf("lines that are over: %v", err)
	}
	there.Close()
	if _, err := there.Open("late"); !errors.Is(err, ErrLines) {
		t.Errorf("Open after Close: %v", err)
	}
}
