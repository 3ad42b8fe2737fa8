package policy

import "math"

// initStream separates the numbers of Init from the numbers of Uniform and Shuffle.
const initStream = 0xd1b54a32d192ed03

// Init returns a fresh canonical parameter vector: weights orthogonal (Saxe et al. 2014) times the network's
// gains, biases 0, other tensors their Fill. It is a function of network and seed alone. Its time grows with the cube of the widest layer:
// 0.1 s for 512, 10 s for 2048.
func Init(n *Network, seed uint64) []float32 {
	params := make([]float32, n.ParamCount())
	for i, p := range n.Params() {
		if p.gain == 0 {
			for j := range p.Rows * p.Cols {
				params[p.Offset+j] = float32(p.fill)
			}
			continue
		}
		g := gaussians{key: philoxKey(seed ^ initStream), tensor: uint32(i)}
		orthogonal(params[p.Offset:p.Offset+p.Rows*p.Cols], p.Rows, p.Cols, p.gain, &g)
	}
	return params
}

// orthogonal fills w [in][out] with a random matrix whose shorter side is orthonormal, times gain.
func orthogonal(w []float32, in, out int, gain float64, g *gaussians) {
	long, short := max(in, out), min(in, out)
	q := make([][]float64, short) // [short][long], orthonormal rows
	for i := range q {
		q[i] = make([]float64, long)
		for k := range q[i] {
			q[i][k] = g.next()
		}
	}
	for i, v := range q {
		// Modified Gram-Schmidt keeps a Gaussian's orientation, so the result is uniform over rotations.
		scale := 1 / math.Sqrt(dot(v, v))
		for k := range v {
			v[k] *= scale
		}
		for _, u := range q[i+1:] {
			c := dot(u, v)
			for k := range u {
				u[k] -= c * v[k]
			}
		}
	}
	for i, v := range q {
		for k, x := range v {
			if in >= out {
				w[k*out+i] = float32(gain * x)
			} else {
				w[i*out+k] = float32(gain * x)
			}
		}
	}
}

func dot(a, b []float64) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// gaussians draws standard normal numbers by Box and Muller's method.
type gaussians struct {
	key    [2]uint32
	tensor uint32
	draw   uint64
	spare  float64
	ready  bool
}

func (g *gaussians) next() float64 {
	if g.ready {
		g.ready = false
		return g.spare
	}
	w := Philox([4]uint32{uint32(g.draw), uint32(g.draw >> 32), g.tensor, 0}, g.key)
	g.draw++
	u := (float64(uint64(w[0])<<20|uint64(w[1])>>12) + 0.5) * 0x1p-52
	v := (float64(uint64(w[2])<<20|uint64(w[3])>>12) + 0.5) * 0x1p-52
	r := math.Sqrt(-2 * math.Log(u))
	sin, cos := math.Sincos(2 * math.Pi * v)
	g.spare, g.ready = r*sin, true
	return r * cos
}
