package rollout

import (
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// whole is the account of blocks in which each environment plays one episode, from its reset to its end. Then it waits for the others. The
// environments of a batch step together, so where they reset themselves one that waits plays on, and its results are thrown away.
type whole struct {
	each  int // agents of an environment
	envs  int
	over  []byte // by row of a step, 1 where the environment's episode in the block has ended
	plays int    // environments that are not over

	// final are the last observations of the episodes that have ended, where environments that play on overwrite the block's.
	final []trajectory.Matrix
	views []trajectory.Matrix // of the block's
}

// newWhole returns nil without the key.
func newWhole(c *shared) *whole {
	if !c.config.WholeEpisodes {
		return nil
	}
	w := &whole{each: c.schema.Agents, envs: c.envs(), over: make([]byte, c.schema.Rows())}
	if c.mode != hostabi.SameStep {
		return w
	}
	block := trajectory.Trajectory{Schema: c.schema, Mem: make([]byte, c.schema.Bytes)}
	for _, m := range block.AppendRows(nil, trajectory.Final, 0) {
		m.Data = slices.Clone(m.Data)
		w.final = append(w.final, m)
	}
	return w
}

// open begins a block.
func (w *whole) open(tr trajectory.Trajectory) {
	if w == nil {
		return
	}
	clear(w.over)
	w.plays = w.envs
	w.views = tr.AppendRows(w.views[:0], trajectory.Final, 0)
}

// idles reports whether the environment of a row is over.
func (w *whole) idles(row int) bool { return w != nil && w.over[row] != 0 }

// allOver reports whether the block has nothing more to tell.
func (w *whole) allOver() bool { return w != nil && w.plays == 0 }

// end is for the environment of a row whose episode in the block has ended.
func (w *whole) end(row int) {
	if w == nil || w.over[row] != 0 {
		return
	}
	first := row - row%w.each
	for i := first; i < first+w.each; i++ {
		w.over[i] = 1
		for k, m := range w.final {
			m.CopyRow(i, w.views[k])
		}
	}
	w.plays--
}

// endWhere is end for the rows where a byte is not 0.
func (w *whole) endWhere(which []byte) {
	if w == nil {
		return
	}
	for i, ends := range which {
		if ends != 0 {
			w.end(i)
		}
	}
}

// forgetIdle forgets the episodes of the agents of environments that are over.
func (w *whole) forgetIdle(a *agents) {
	if w == nil {
		return
	}
	for i, over := range w.over {
		if over != 0 {
			a.forget(i)
		}
	}
}

// discard removes what environments that are over have done in row t, before it is counted.
func (w *whole) discard(tr trajectory.Trajectory, t int) {
	if w == nil || w.plays == w.envs {
		return
	}
	for i, over := range w.over {
		if over != 0 {
			tr.ClearResultOf(i, t)
		}
	}
}

// invalidate takes the rows of environments that are over out of a row's valid ones.
func (w *whole) invalidate(valid []byte) {
	if w == nil || w.plays == w.envs {
		return
	}
	for i, over := range w.over {
		valid[i] &^= over
	}
}

// note notes which environments' episodes have ended in row t, which is complete.
func (w *whole) note(r *rows, t int) {
	if w == nil {
		return
	}
	for env := range w.envs {
		first := env * w.each
		if r.agents != nil && r.agents.EnvEnded[env] != 0 || r.agents == nil && r.ends(t*r.n+first) {
			w.end(first)
		}
	}
}

// endWhole completes a block of which t rows have been stepped, first being the global index of environment 0. Episodes that are longer than
// the block end there, as truncated.
func (r *rows) endWhole(t, first int) {
	w := r.whole
	if w == nil {
		return
	}
	if w.plays > 0 {
		for i, over := range w.over {
			r.leaving[i] = 1 - over
		}
		if cut := r.endWhere(r.leaving, t, true); cut > 0 {
			w.tell(r, cut, first)
		}
		r.foundAll() // the reset is for all
	}
	for k, m := range w.final {
		for i := range w.over {
			w.views[k].CopyRow(i, m)
		}
	}
	r.tr.Pad(t)
}

// tell counts episodes that were longer than a block, and names the run's first.
func (w *whole) tell(r *rows, cut, first int) {
	named := r.c.cutEpisodes.Value() > 0
	if r.c.cutEpisodes.Add(uint64(cut)); named {
		return
	}
	env := first + slices.Index(r.leaving, 1)/w.each
	r.c.h.Log.Warn("an episode is longer than a block of whole episodes: it ends there as truncated, with the value of its last observation", "env", env,
		"horizon", r.c.config.Horizon)
}
