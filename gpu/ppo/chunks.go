package ppo

import "github.com/rlhost/rlhost/gpu/policy"

// epoch is a pass over the rows of a round: their order, the ends of the minibatches, and how many of them each optimiser step has. It is
// reused.
type epoch struct {
	rows  []uint32
	ends  []int
	steps []int

	chunks []uint32 // of a network that keeps a state: numbers of the chunks
	starts []int    // where chunk k of the dataset's lies in Samples.Chunked; one more at the end
}

// arrange makes pass number over all valid rows. Of a network that keeps a state whole chunks are shuffled, and a minibatch has whole
// chunks, without their burn-in: as many as fit its size.
func (p *epoch) arrange(r *Round, n *policy.Network, c *Config, number uint32) {
	p.rows, p.ends, p.steps = p.rows[:0], p.ends[:0], p.steps[:0]
	if n.Chunk > 0 {
		p.arrangeChunks(r, n, c, number)
		return
	}
	p.rows = append(p.rows, r.Samples.Valid...)
	p.shuffle(r, c, number, p.rows)
	end := 0
	p.divide(p.rows, c.Minibatch, c.Accumulate, func(minibatch []uint32) {
		end += len(minibatch)
		p.ends = append(p.ends, end)
	})
}

// divide yields the minibatches of size units at most that an epoch's units come in, and notes how many each optimiser step has.
func (p *epoch) divide(units []uint32, size, accumulate int, yield func(minibatch []uint32)) {
	for len(units) > 0 {
		var step, minibatch []uint32
		step, units = NextMinibatch(units, size*accumulate)
		parts := 0
		for ; len(step) > 0; parts++ {
			minibatch, step = NextMinibatch(step, size)
			yield(minibatch)
		}
		p.steps = append(p.steps, parts)
	}
}

func (*epoch) shuffle(r *Round, c *Config, number uint32, units []uint32) {
	if c.Shuffle {
		Shuffle(r.Dataset.Seed, r.Dataset.Index, number, units)
	}
}

func (p *epoch) arrangeChunks(r *Round, n *policy.Network, c *Config, number uint32) {
	d, rows := r.Dataset, r.Samples.Chunked
	p.chunks, p.starts = p.chunks[:0], d.ChunkStarts(n, rows, p.starts[:0])
	for k := range len(p.starts) - 1 {
		p.chunks = append(p.chunks, uint32(k))
	}
	p.shuffle(r, c, number, p.chunks)
	p.divide(p.chunks, c.Minibatch/(n.Chunk-d.BurnInRows), c.Accumulate, func(minibatch []uint32) {
		for _, k := range minibatch {
			p.rows = append(p.rows, rows[p.starts[k]:p.starts[k+1]]...)
		}
		p.ends = append(p.ends, len(p.rows))
	})
}
