package worker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/internal/testkit"
)

// halves makes steps in two halves, by the other goroutine if the batch has been found to be slow.
type halves struct {
	e     *batch
	ready chan struct{}
	tell  func()
	waits int // steps that were not over at once
}

func newHalves(e env.Env) *halves {
	h := &halves{e: e.(*batch), ready: make(chan struct{}, 1)}
	h.tell = func() { h.ready <- struct{}{} }
	return h
}

func (h *halves) step(t int) error {
	over, err := h.e.StartStep(t, h.tell)
	if over {
		return err
	}
	h.waits++
	<-h.ready
	return h.e.FinishStep()
}

func TestStartStep_DoesWhatStepDoes(t *testing.T) {
	const envs, steps = 5, 100
	p := loadIn(t, 2, env.Source{Use: "scripted@1"})
	blocks := blocksOf(t, p.Spec(), trajectory.Shape{Steps: steps, Envs: envs}, 2)
	a, b := newBatch(t, p, envs, blocks[0]), newBatch(t, p, envs, blocks[1])
	h := newHalves(b)
	for step := range steps {
		h.e.slow = inARow // as if all steps before had taken long
		if err := errors.Join(a.Step(step), h.step(step)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(blocks[0].Mem[:blocks[0].Schema.GuestBytes], blocks[1].Mem[:blocks[1].Schema.GuestBytes]) {
		t.Error("the blocks differ")
	}
	if h.waits != steps {
		t.Errorf("%d of %d steps were waited for elsewhere", h.waits, steps)
	}
	step := 0
	if n := testkit.Allocs(9, 9, func() {
		h.e.slow = inARow
		if err := h.step(step); err != nil {
			t.Fatal(err)
		}
		step++
	}); n != 0 {
		t.Errorf("%v allocations a step, want 0", n)
	}
	if _, err := h.e.StartStep(steps, h.tell); err == nil {
		t.Error("a step behind the last row is begun")
	}
}

func TestStartStep_FindsOutWhoIsSlow(t *testing.T) {
	p := loadIn(t, 1, env.Source{Use: "slow@1"})
	block := blocksOf(t, p.Spec(), trajectory.Shape{Steps: 4 * inARow, Envs: 2}, 1)[0]
	h := newHalves(newBatch(t, p, 2, block))
	for step := range 4 * inARow {
		if err := h.step(step); err != nil {
			t.Fatal(err)
		}
	}
	if least, most := 3*inARow, 4*inARow-inARow/several; h.waits < least || h.waits > most { // all but the first, of which a busy machine makes fewer
		t.Errorf("%d steps were waited for elsewhere, want %d to %d", h.waits, least, most)
	}
}

// Steps that take much longer than a switch are waited for elsewhere soon, until they are fast again.
func TestStartStep_FindsOutWhoIsVerySlow(t *testing.T) {
	const slow = 40
	p := loadIn(t, 1, env.Source{Use: "lazy@1"})
	block := blocksOf(t, p.Spec(), trajectory.Shape{Steps: 1000, Envs: 1}, 1)[0]
	h := newHalves(newBatch(t, p, 1, block))
	for step := range slow {
		if err := h.step(step); err != nil {
			t.Fatal(err)
		}
	}
	if want := slow - inARow/several; h.waits != want {
		t.Errorf("%d steps were waited for elsewhere, want %d", h.waits, want)
	}
	for step, before := slow, -1; h.waits != before; step++ {
		before = h.waits
		if err := h.step(step); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStartStep_LosesWhatStepLoses(t *testing.T) {
	p := loadIn(t, 2, env.Source{Use: "hangs@1", Limits: env.Limits{Step: 200 * time.Millisecond}})
	block := blocksOf(t, p.Spec(), trajectory.Shape{Steps: 8, Envs: 4}, 1)[0]
	h := newHalves(newBatch(t, p, 4, block))
	h.e.slow = inARow
	if err := unix.Kill(h.e.workers[0].p.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if spans := lost(t, h.step(0)); fmt.Sprint(spans) != "[{0 2}]" {
		t.Errorf("lost %v", spans)
	}
	if err := h.e.Reset(1, []uint8{1, 1, 0, 0}, nil); err != nil {
		t.Fatal(err)
	}
	if err := h.step(1); err != nil {
		t.Fatal(err)
	}
	err := h.step(2) // in which an environment of the second process hangs
	var f *env.Fault
	if !errors.As(err, &f) || f.Kind != env.FaultDeadline {
		t.Errorf("got %v, want a deadline", err)
	}
	if over, err := h.e.StartStep(3, h.tell); !over || !errors.Is(err, env.ErrPoisoned) {
		t.Errorf("afterwards: %v, %v, want ErrPoisoned", over, err)
	}
}
