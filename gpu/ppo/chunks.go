package ppo

import "github.com/rlhost/rlhost/gpu/policy"

// epoch is a pass over the rows of a round: their order, and the ends of the minibatches. It is reused.
type epoch struct {
	rows []uint32
	ends []int

	chunks []uint32 // of a network that keeps a state: numbers of the chunks
	starts []int    // where chunk k of the dataset's lies in Samples.Chunked; one more at the end
}

// shuffle makes a pass over all valid rows. Of a network that keeps a state whole chunks are shuffled, and a minibatch has whole
// chunks: as many as fit its size.
func (p *epoch) shuffle(r *Round, n *policy.Network, number uint32, size int) {
	d := r.Dataset
	p.rows, p.ends = p.rows[:0], p.ends[:0]
	if n.Chunk > 0 {
		p.shuffleChunks(r, n, number, size/n.Chunk)
		return
	}
	p.rows = append(p.rows, r.Samples.Valid...)
	Shuffle(d.Seed, d.Index, number, p.rows)
	for rest := p.rows; len(rest) > 0; {
		_, rest = NextMinibatch(rest, size)
		p.ends = append(p.ends, len(p.rows)-len(rest))
	}
}

func (p *epoch) shuffleChunks(r *Round, n *policy.Network, number uint32, size int) {
	d, rows := r.Dataset, r.Samples.Chunked
	p.chunks, p.starts = p.chunks[:0], d.ChunkStarts(n, rows, p.starts[:0])
	for c := range len(p.starts) - 1 {
		p.chunks = append(p.chunks, uint32(c))
	}
	Shuffle(d.Seed, d.Index, number, p.chunks)
	for rest := p.chunks; len(rest) > 0; {
		var batch []uint32
		batch, rest = NextMinibatch(rest, size)
		for _, c := range batch {
			p.rows = append(p.rows, rows[p.starts[c]:p.starts[c+1]]...)
		}
		p.ends = append(p.ends, len(p.rows))
	}
}
