package calls_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/calls"
)

// way carries frames with faults: some are lost, some come twice, and each takes its own time.
type way struct {
	mu     sync.Mutex
	random *rand.Rand
	lost   float64
}

func (w *way) carry(frame []byte, hear func([]byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	copied := bytes.Clone(frame)
	for range 1 + w.random.IntN(2) {
		if w.random.Float64() >= w.lost {
			time.AfterFunc(time.Duration(w.random.IntN(300))*time.Millisecond, func() { hear(copied) })
		}
	}
}

// Each call is handled once, in order, and its reply is whole, whatever the way does to the frames.
func TestCall_IsHandledOnceOverAWayThatLoses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seed = 7
		w := &way{random: rand.New(rand.NewPCG(seed, 1)), lost: 0.3}
		handled := uint64(0)
		var hears atomic.Pointer[calls.Caller]
		answerer := calls.NewAnswerer(func(f []byte) { w.carry(f, func(f []byte) { hears.Load().Hear(f) }) }, func(call []byte) []byte {
			handled++
			if got := binary.LittleEndian.Uint64(call); got != handled {
				t.Errorf("seed %d: call %d is handled as number %d", seed, got, handled)
			}
			time.Sleep(time.Duration(handled%3) * time.Second)
			return append(bytes.Clone(call), call...)
		})
		defer answerer.Close()
		for session := range uint64(3) {
			caller := calls.NewCaller(session+1, func(f []byte) { w.carry(f, answerer.Hear) })
			hears.Store(caller)
			for n := range 20 {
				sizes := []int{8, 100, calls.PartBytes, calls.PartBytes + 1, 3*calls.PartBytes - 5}
				call := make([]byte, sizes[n%len(sizes)])
				for i := range call {
					call[i] = byte(i * n)
				}
				binary.LittleEndian.PutUint64(call, session*20+uint64(n)+1)
				reply, err := caller.Call(t.Context(), call)
				if err != nil || !bytes.Equal(reply, append(bytes.Clone(call), call...)) {
					t.Fatalf("seed %d: call %d of %d bytes: %d bytes, %v", seed, n, len(call), len(reply), err)
				}
			}
		}
		time.Sleep(time.Minute) // late frames
		if handled != 60 {
			t.Errorf("seed %d: %d calls were handled, want 60", seed, handled)
		}
	})
}

// A caller hears that the other program has forgotten its calls, and ends with its context where nobody answers.
func TestCall_EndsWhereNobodyKnowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var caller *calls.Caller
		begin := func() *calls.Answerer {
			return calls.NewAnswerer(func(f []byte) { caller.Hear(bytes.Clone(f)) }, func(call []byte) []byte { return call })
		}
		answerer := begin()
		caller = calls.NewCaller(1, func(f []byte) { answerer.Hear(f) })
		if _, err := caller.Call(t.Context(), []byte("one")); err != nil {
			t.Fatal(err)
		}
		answerer.Close()
		answerer = begin()
		if _, err := caller.Call(t.Context(), []byte("two")); !errors.Is(err, calls.ErrUnknown) {
			t.Errorf("a program that was started again: %v", err)
		}
		answerer.Close()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		caller = calls.NewCaller(2, func([]byte) {})
		if _, err := caller.Call(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody: %v", err)
		}
		if _, err := caller.Call(ctx, make([]byte, calls.MostBytes+1)); !errors.Is(err, calls.ErrLarge) {
			t.Errorf("too many bytes: %v", err)
		}
	})
}

// Frames of others, cut or made up, change nothing.
func FuzzAnswerer(f *testing.F) {
	f.Add([]byte{1}, uint64(3))
	f.Fuzz(func(t *testing.T, frame []byte, session uint64) {
		answerer := calls.NewAnswerer(func([]byte) {}, func(call []byte) []byte { return call })
		answerer.Hear(frame)
		answerer.Close()
	})
}
