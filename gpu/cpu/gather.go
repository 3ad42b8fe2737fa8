package cpu

import (
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/cpu/internal/kern"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
)

// record is all that learning needs of a dataset row but for its observation and mask, in half a cache line, so that
// a shuffled row costs one miss. Its observation begins at obs in the column of its block.
type record struct {
	block, obs                     uint32
	action                         int32
	logProb, value, advantage, ret float32
	_                              uint32
}

// minibatch is the rows of one optimiser step, dense, with room for whole groups of lanes after the last row.
type minibatch struct {
	obs                            matrix
	bytes                          []byte        // [rows][Obs], in the place of obs where rows are bytes
	mask                           []byte        // [rows][Actions]
	action                         []int32       // of a single Categorical action
	actions                        []ppo.Actions // else: Index and Raw are [elements][ld]
	ld                             int
	logProb, value, advantage, ret []float32
	order                          arrangement // of a network that keeps a state
}

// source is a dataset as the gather reads it, for the duration of one Update.
type source struct {
	records []record      // by dataset row
	columns [][]float32   // observations of every block, the guest's memory
	stride  int           // elements between the elements of an observation
	rows    policy.Gather // for observations that are not read as they lie
	mask    []byte        // [rows][Actions], empty without a mask; of a single Categorical action
	actions []ppo.Actions
}

// open notes the places of a dataset's rows and of the values stored with them.
func (s *source) open(d *policy.Dataset, samples *ppo.Samples, single bool) {
	l, _ := d.Blocks[0].Schema.Layout(trajectory.Obs)
	s.stride, s.mask, s.actions = l.StrideElem/4, nil, samples.Actions
	var index []int32
	if single {
		s.mask, index = s.actions[0].Mask, s.actions[0].Index
	}
	s.records = grown(s.records, d.Rows())
	s.columns = s.columns[:0]
	for _, b := range d.Blocks {
		s.columns = append(s.columns, b.Float32(trajectory.Obs))
	}
	row := 0
	for t := range d.Steps() {
		for block := range d.Blocks {
			for e := range l.Envs {
				s.records[row] = record{block: uint32(block), obs: uint32((t*l.StrideT + e*l.StrideEnv) / 4),
					logProb: samples.LogProb[row], value: samples.Value[row]}
				if single {
					s.records[row].action = index[row]
				}
				row++
			}
		}
	}
}

// close forgets the memory of the dataset.
func (s *source) close() {
	clear(s.columns)
	s.rows.Close()
}

// aim notes the targets of the rows.
func (s *source) aim(t *ppo.Targets) {
	for i := range s.records {
		s.records[i].advantage, s.records[i].ret = t.Advantage[i], t.Return[i]
	}
}

// arrange puts the rows of a minibatch into the order in which they are computed.
func (k *engine) arrange(rows []uint32) []uint32 {
	if k.kept == 0 {
		return rows
	}
	k.batch.order.arrange(k.Dataset, &k.net, rows, k.kept, k.layout.block()/k.net.Chunk)
	return k.batch.order.rows
}

// gather copies rows of the dataset into the minibatch: the one copy that a learner makes.
func (k *engine) gather(rows []uint32) {
	n := k.obs
	b := &k.batch
	if k.bytes {
		b.bytes = grown(b.bytes, len(rows)*n)
		b.reserve(len(rows)+kern.Lanes, 0)
	} else {
		b.reserve(len(rows)+kern.Lanes, k.row)
	}
	mean, scale := k.Dataset.ObsMean, k.Dataset.ObsScale
	if !k.net.NormalizeObs() {
		mean, scale = nil, nil
	}
	for i, row := range rows {
		r := &k.source.records[row]
		b.action[i], b.logProb[i], b.value[i] = r.action, r.logProb, r.value
		b.advantage[i], b.ret[i] = r.advantage, r.ret
		if k.enters != nil {
			k.source.rows.Row(k.entered(i, b.bytes, b.obs.data), row)
			continue
		}
		policy.NormalizeRow(b.obs.data[i*b.obs.row:i*b.obs.row+n], k.source.columns[r.block][r.obs:], k.source.stride, mean, scale)
	}
	b.mask = b.mask[:0]
	if len(k.source.mask) > 0 {
		for _, row := range rows {
			b.mask = append(b.mask, k.source.mask[int(row)*k.actions:(int(row)+1)*k.actions]...)
		}
	}
	if !k.single {
		b.gatherActions(k.source.actions, rows)
	}
	size := 4
	if k.bytes {
		size = 1
	}
	k.Gathered(size * len(rows) * n)
}

// gatherActions copies the actions of rows, elements apart.
func (b *minibatch) gatherActions(from []ppo.Actions, rows []uint32) {
	if len(b.actions) != len(from) {
		b.actions = make([]ppo.Actions, len(from))
	}
	b.ld = len(rows) + kern.Lanes
	for k := range from {
		f, to := &from[k], &b.actions[k]
		n := f.Size
		to.ActionSize, to.Mask = f.ActionSize, to.Mask[:0]
		if f.Continuous {
			to.Raw = grown(to.Raw, n*b.ld)
		} else {
			to.Index = grown(to.Index, n*b.ld)
			clear(to.Index) // what follows the rows is an index as well
		}
		for i, row := range rows {
			for e := range n {
				if f.Continuous {
					to.Raw[e*b.ld+i] = f.Raw[int(row)*n+e]
				} else {
					to.Index[e*b.ld+i] = f.Index[int(row)*n+e]
				}
			}
			to.Mask = append(to.Mask, f.Masks(int(row), int(row)+1)...)
		}
	}
}

// reserve makes room for rows rows of obs elements. Long rows are kept apart, as in layers.
func (b *minibatch) reserve(rows, obs int) {
	b.obs.row, b.obs.col = obs, 1
	if obs >= 4*kern.Panel {
		b.obs.row = apart(obs)
	}
	if need := rows * b.obs.row; len(b.obs.data) < need {
		b.obs.data = aligned(need)
	}
	b.action = grown(b.action, rows)
	b.logProb, b.value = grown(b.logProb, rows), grown(b.value, rows)
	b.advantage, b.ret = grown(b.advantage, rows), grown(b.ret, rows)
}

// grown returns a slice of n elements with undefined contents, in the memory of s where that is large enough.
func grown[E any](s []E, n int) []E { return slices.Grow(s[:0], n)[:n] }
