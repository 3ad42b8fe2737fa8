package ptx

import (
	"math/rand/v2"
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/ptx/internal/syntax"
)

// cta is a group of warps that share memory and a barrier, and the state of the CTA that runs in it now. A worker uses one
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
	shared  []byte  // this launch's part of it
	shadow  shadow
	epoch   uint64 // of the time between two barriers, among all of a memory's launches
	reads   reads
	barrier *syntax.Inst // that warps wait at, nil while none does
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
		w := c.choose()
		if w == nil {
			c.fences.end(c)
			return nil
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
	c.barrier = nil
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

// next begins a time that a barrier orders after all earlier ones.
func (c *cta) next() {
	c.shadow.next()
	c.epoch = c.grid.epochs.Add(1) & (1<<32 - 1)
}

// choose returns a warp that can continue, any of them, or nil if all have ended.
func (c *cta) choose() *warp {
	n := len(c.warps)
	first := c.order.IntN(n)
	for i := range n {
		if w := c.warps[(first+i)%n]; w.state == ready {
			return w
		}
	}
	return nil
}

// arrive brings a warp to the barrier, where it waits for the others.
func (c *cta) arrive(w *warp, in *syntax.Inst) {
	if c.barrier != nil && c.barrier != in {
		w.fail(in, w.live, Divergence, "other warps wait at the barrier in line %d", c.barrier.Line)
		return
	}
	c.barrier, w.state = in, waiting
	c.release()
}

// release lets the warps that wait at the barrier continue, unless others have not ended.
func (c *cta) release() {
	if c.barrier == nil || slices.ContainsFunc(c.warps, func(w *warp) bool { return w.state == ready }) {
		return
	}
	for _, w := range c.warps {
		if w.state == waiting {
			w.state = ready
		}
	}
	c.barrier = nil
	c.next()
	c.fences.meet(c)
}
