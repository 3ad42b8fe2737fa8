package ptx

import (
	"math/rand/v2"
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// barriers is how many a CTA has.
const barriers = 16

// compileBarrier is one of a CTA's while threads wait at it.
type barrier struct {
	threads int  // that are to come, 0: all that have not left
	come    int  // threads
	used    bool // somebody has come since it opened last
	inst    *syntax.Inst
}

// cta is a group of warps that share memory and barriers, and the state of the one that runs in it now. A worker uses one
// for all the CTAs that it runs.
type cta struct {
	grid    *grid
	entry   *Entry
	program *program
	number  int // within the grid
	at      [3]int
	warps   []*warp
	spare   []*warp // all that were made, warps are the first of them
	memory  []byte  // all that was made
	shared  []byte  // what this launch has of it
	shadow  shadow
	epoch   uint64 // of the time between two barriers, among all of a memory's launches
	reads   reads
	open    [barriers]barrier
	order   *rand.Rand
	source  *rand.PCG
	fences  fences
}

// longest and shortest are the bounds of how many instructions a warp executes before another one does.
const shortest, longest = 1, 4096

// run executes the CTA of a number within the grid and returns its fault, if there is one.
func (c *cta) run(number int) *Fault {
	c.start(number)
	for {
		w, waits := c.choose()
		if w == nil && waits == nil {
			c.fences.end(c)
			return nil
		}
		if w == nil {
			return waits.stuck()
		}
		w.run(shortest + c.order.IntN(longest))
		if w.fault != nil {
			return w.fault
		}
		if w.state == ended {
			c.release()
		}
		if c.grid.stopped.Load() {
			return nil
		}
	}
}

func (c *cta) start(number int) {
	l := c.grid.launch
	c.number = number
	c.at = [3]int{number % l.Grid[0], number / l.Grid[0] % l.Grid[1], number / (l.Grid[0] * l.Grid[1])}
	c.source.Seed(l.Seed, uint64(number))
	c.open = [barriers]barrier{}
	c.fences = fences{}
	c.next()
	poison(c.shared)
	for i, w := range c.warps {
		live := everyone
		if rest := c.grid.threads - i*lanes; rest < lanes {
			live = 1<<rest - 1
		}
		w.start(live)
	}
}

// next begins a time that a barrier orders behind all before.
func (c *cta) next() {
	c.shadow.next()
	c.epoch = c.grid.epochs.Add(1) & (1<<32 - 1)
}

// compileChoose returns a warp that can go on, any of them, or else one that waits.
func (c *cta) choose() (goes, waits *warp) {
	n := len(c.warps)
	first := c.order.IntN(n)
	for i := range n {
		w := c.warps[(first+i)%n]
		switch w.state {
		case ready:
			return w, nil
		case waiting:
			waits = w
		}
	}
	return nil, waits
}

// arrive brings a warp to a barrier, where it waits unless it only tells that it is there.
func (c *cta) arrive(w *warp, e *end) {
	id, threads, ok := e.barrier.read(w, e.inst)
	if !ok {
		return
	}
	b := &c.open[id]
	switch {
	case !b.used:
		*b = barrier{threads: threads, used: true, inst: e.inst}
	case b.threads != threads:
		w.fail(e.inst, w.live, Divergence, "barrier %d is for %d threads, in line %d for %d", id, threads, b.inst.Line, b.threads)
		return
	case threads == 0 && b.inst != e.inst:
		w.fail(e.inst, w.live, Divergence, "other warps wait at barrier %d in line %d", id, b.inst.Line)
		return
	}
	b.come += lanes
	if !e.barrier.arrives {
		w.state, w.barrier, w.at = waiting, id, e
	}
	c.release()
}

// release lets the warps go on that wait at barriers which are complete.
func (c *cta) release() {
	for id := range c.open {
		b := &c.open[id]
		if !b.used || !c.complete(b) {
			continue
		}
		here := slices.DeleteFunc(slices.Clone(c.warps), func(w *warp) bool { return w.state != waiting || w.barrier != id })
		brought := collect(here)
		for _, w := range here {
			w.state = ready
			w.at.barrier.deliver(w, brought)
		}
		b.used = false
		c.next()
		c.fences.meet(c)
	}
}

// complete reports whether all threads that a barrier is for have come.
func (c *cta) complete(b *barrier) bool {
	if b.threads > 0 {
		return b.come >= b.threads
	}
	for _, w := range c.warps {
		if w.state == ready || w.state == waiting && &c.open[w.barrier] != b {
			return false
		}
	}
	return true
}

// stuck is the fault of a warp that waits at a barrier which no other thread will come to.
func (w *warp) stuck() *Fault {
	w.fail(w.at.inst, w.live, Divergence, "the other threads have left or wait elsewhere")
	return w.fault
}
