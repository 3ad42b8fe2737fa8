package ppo

import "github.com/rlhost/rlhost/gpu/policy"

// epoch is a pass over the rows of a round: their order, and the ends of the minibatches. It is reused.
type epoch struct {
	rows []uint32
	ends []int

	chunks []uint32 // of a network that keeps a state: numbers of the chunks
	starts []int    // where chunk k of the dataset's lies in Samples.Chunked; one more at the end
}

// arrange makes pass number over all valid rows. Of a network that keeps a state whole chunks are shuffled, and a minibatch has whole
// chunks: as many as fit its size.
func (p *epoch) arrange(r *Round, n *policy.Network, c *Config, number uint32) {
	p.rows, p.ends = p.rows[:0], p.ends[:0]
	if n.Chunk > 0 {
		p.arrangeChunks(r, n, c, number)
		return
	}
	p.rows = append(p.rows, r.Samples.Valid...)
	p.shuffle(r, c, number, p.rows)
	for rest := p.rows; len(rest) > 0; {
		_, rest = NextMinibatch(rest, c.Minibatch)
		p.ends = append(p.ends, len(p.rows)-len(rest))
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
	for rest := p.chunks; len(rest) > 0; {
		var batch []uint32
		batch, rest = NextMinibatch(rest, c.Minibatch/n.Chunk)
		for _, k := range batch {
			p.rows = append(p.rows, rows[p.starts[k]:p.starts[k+1]]...)
		}
		p.ends = append(p.ends, len(p.rows))
	}
}
