package rollout

import (
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
)

// decisions are the open decisions of a split's agents from one block to the next. A decision is open if its agent does not act where the
// block ends, so nobody knows its consequences yet. It becomes row 0 of the next block, where its agent does not act either. Whether a
// decision counts must not depend on its outcome: a block that kept only the decisions whose episodes have ended would learn from too
// many ends.
type decisions struct {
	tr     trajectory.Trajectory // of one step
	open   []byte                // 1 where the agent has a decision in tr, by row of a step
	waited []int32               // steps since
	any    bool

	carried    []byte // 1 where row 0 of the block is a decision of an earlier one
	anyCarried bool
}

// newDecisions returns nil for environments whose agents always act.
func newDecisions(s *trajectory.Schema) (*decisions, error) {
	if !s.Has(trajectory.Active) {
		return nil, nil
	}
	tr, err := s.NewDecisions()
	n := s.Rows()
	return &decisions{tr: tr, open: make([]byte, n), waited: make([]int32, n), carried: make([]byte, n)}, err
}

// begin begins a block.
func (h *decisions) begin() {
	if h.anyCarried {
		clear(h.carried)
		h.anyCarried = false
	}
}

// drop forgets the decision of an agent that is between two blocks.
func (h *decisions) drop(i int) { h.open[i] = 0 }

// place makes the decisions row 0 of the block, which has been stepped: nobody reads its observations any more. The agents'
// rewards of that step count with the decisions.
func (h *decisions) place(tr trajectory.Trajectory) {
	if !h.any {
		return
	}
	h.any = false
	acts, valid := tr.Acts(0), tr.Row(trajectory.Valid, 0).Data
	reward, shaped := tr.Float32(trajectory.Reward), tr.Float32(trajectory.ShapedReward)
	for i, open := range h.open {
		if open == 0 {
			continue
		}
		got, worth := reward[i], float32(0)
		if shaped != nil {
			worth = shaped[i]
		}
		tr.CopyDecisionOf(i, 0, h.tr, 0)
		tr.CopyStateOf(i, 0, h.tr, 0)
		reward[i] += got
		if shaped != nil {
			shaped[i] += worth
		}
		acts[i], valid[i] = 1, 1
		h.open[i], h.carried[i], h.anyCarried = 0, 1, true
	}
}

// keepStates keeps the policies' states before row t of agents that act in it and not in the next row: the block
// overwrites them before it ends.
func (h *decisions) keepStates(tr trajectory.Trajectory, t int) {
	if !tr.Schema.Has(trajectory.CoreState) {
		return
	}
	next := tr.Acts(t + 1)
	for i, acts := range tr.Acts(t) {
		if acts != 0 && next[i] == 0 {
			h.tr.CopyStateOf(i, 0, tr, t)
		}
	}
}

// take keeps a decision that is still open where its block of so many steps ends, and removes it from the block. The decision before it
// uses its value as bootstrap. take reports false if the decision has waited for longer than an environment may be idle: the policy that
// made it is long gone.
func (h *decisions) take(tr trajectory.Trajectory, row, i, steps int) bool {
	waited := int32(steps - row)
	if row == 0 && h.carried[i] != 0 {
		waited += h.waited[i]
	}
	tr.Bytes(trajectory.Valid)[row*len(h.open)+i] = 0
	if waited > trajectory.MaxIdle {
		return false
	}
	h.tr.CopyDecisionOf(i, 0, tr, row)
	h.open[i], h.waited[i], h.any = 1, waited, true
	return true
}

// heldState is the part of a snapshot about open decisions.
type heldState struct {
	Open   []byte
	Waited []int32
	Rows   []byte
}

// heldDecisions returns nil where there are none.
func (r *rows) heldDecisions() *heldState {
	if r.agents == nil || r.agents.held == nil || !slices.Contains(r.agents.held.open, 1) {
		return nil
	}
	h := r.agents.held
	return &heldState{slices.Clone(h.open), slices.Clone(h.waited), slices.Clone(h.tr.Mem)}
}

// load takes saved decisions over, except from blocks of another layout: their open decisions are in no loss.
func (h *decisions) load(from *heldState) {
	if h == nil || from == nil || len(from.Open) != len(h.open) || len(from.Waited) != len(h.open) || len(from.Rows) != len(h.tr.Mem) {
		return
	}
	copy(h.open, from.Open)
	copy(h.waited, from.Waited)
	copy(h.tr.Mem, from.Rows)
	h.any = true
}
