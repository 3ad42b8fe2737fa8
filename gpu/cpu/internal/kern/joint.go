package kern

import "github.com/rlhost/rlhost/gpu/policy"

// Choice describes one categorical element of a joint action in a block of rows, for the loss: Weigh adds its
// log-probability and entropy to the action's, Descend turns its logits into their gradient. All slices have room for
// Rows rounded up to Lanes.
type Choice struct {
	Rows, Actions int
	Logits        []float32 // [Actions][LD]; after Weigh log-probabilities, after Descend the gradient
	LD            int
	Action        []int32 // in range
	LogProb       []float32
	Entropy       []float32
	Own           []float32 // entropy of this element, from Weigh for Descend
	Slope         []float32 // of the surrogate over the joint log-probability, from Surrogate
	Scratch       []float32 // Actions*Lanes

	Coef float32 // of the entropy, over the rows of the minibatch
}

func (c *Choice) check() {
	rows := (c.Rows + Lanes - 1) / Lanes * Lanes
	if c.Rows < 0 || c.Actions < 1 || c.LD < rows {
		panic("kern: size of a choice")
	}
	if c.Rows > 0 {
		_, _, _, _ = c.Logits[(c.Actions-1)*c.LD+rows-1], c.Action[rows-1], c.LogProb[rows-1], c.Entropy[rows-1]
		_, _, _ = c.Own[rows-1], c.Slope[rows-1], c.Scratch[c.Actions*Lanes-1]
	}
}

func (c *Choice) weigh() {
	for r := range c.Rows {
		largest := c.Logits[r]
		for a := 1; a < c.Actions; a++ {
			largest = max(largest, c.Logits[a*c.LD+r])
		}
		var sum, entropy float32
		for a := range c.Actions {
			sum += exp(c.Logits[a*c.LD+r] - largest)
		}
		logSum := log(sum)
		for a := range c.Actions {
			logProb := c.Logits[a*c.LD+r] - largest - logSum
			c.Logits[a*c.LD+r] = logProb
			entropy -= float32(exp(logProb) * logProb)
		}
		c.LogProb[r] += c.Logits[int(c.Action[r])*c.LD+r]
		c.Entropy[r] += entropy
		c.Own[r] = entropy
	}
}

func (c *Choice) descend() {
	for r := range c.Rows {
		slope := c.Slope[r]
		for a := range c.Actions {
			x := c.Logits[a*c.LD+r]
			d := (float32(c.Coef*(x+c.Own[r])) + slope) * exp(x)
			if a == int(c.Action[r]) {
				d -= slope
			}
			c.Logits[a*c.LD+r] = d
		}
	}
}

// Normal describes the Gaussian elements of an action in a block of rows. Draw writes Raw, Weigh adds log-probability and
// entropy to the action's, Descend turns the parameters into their gradient. All slices have room for Rows rounded up
// to Lanes.
type Normal struct {
	Rows, N    int
	Mean, Log  []float32 // [N][LD] means and logarithms of standard deviations
	LD         int
	Raw        []float32 // [N][RawLD] drawn numbers
	RawLD      int
	LogProb    []float32
	Entropy    []float32
	Slope      []float32 // of the surrogate over the joint log-probability, from Surrogate
	Weight     []float32 // of the entropy in Descend with Tanh: ratios, from Surrogate
	Seed, Step uint64
	Env        uint32   // of row 0, or
	Places     []uint32 // added to Env for each row; nil: the row's number
	FirstDraw  uint32
	Greedy     bool
	Tanh       bool // log-probabilities are of tanh(Raw), and the entropy is -log-probability; its gradient moves Raw with the parameters

	Coef float32 // of the entropy, over the rows of the minibatch
}

func (n *Normal) check() {
	rows := (n.Rows + Lanes - 1) / Lanes * Lanes
	if n.Rows < 0 || n.N < 1 || n.LD < rows || n.RawLD < rows {
		panic("kern: size of a normal distribution")
	}
	if n.Rows > 0 {
		last := (n.N-1)*n.LD + rows - 1
		_, _, _ = n.Mean[last], n.Log[last], n.Raw[(n.N-1)*n.RawLD+rows-1]
		_, _, _, _ = n.LogProb[rows-1], n.Entropy[rows-1], n.Slope[rows-1], n.Weight[rows-1]
	}
	if n.Places != nil && len(n.Places) < n.Rows {
		panic("kern: places of a normal distribution")
	}
}

const logSqrt2Pi = 0.918938533204672742

func (n *Normal) draw() {
	for r := range n.Rows {
		for i := 0; i < n.N; i += 2 {
			var first, second float32
			if !n.Greedy {
				words := policy.Philox([4]uint32{uint32(n.Step), uint32(n.Step >> 32), n.Env + place(n.Places, r), n.FirstDraw + uint32(i/2)},
					[2]uint32{uint32(n.Seed), uint32(n.Seed >> 32)})
				first, second = boxMuller(words[0], words[1])
			}
			n.Raw[i*n.RawLD+r] = n.Mean[i*n.LD+r] + float32(exp(n.Log[i*n.LD+r])*first)
			if i+1 < n.N {
				n.Raw[(i+1)*n.RawLD+r] = n.Mean[(i+1)*n.LD+r] + float32(exp(n.Log[(i+1)*n.LD+r])*second)
			}
		}
	}
}

// boxMuller makes two normal numbers of two words.
func boxMuller(u, v uint32) (first, second float32) {
	radius := sqrt(-2 * log((float32(u>>9)+0.5)*0x1p-23))
	sin, cos := turn((float32(v>>9) + 0.5) * 0x1p-23)
	return float32(radius * cos), float32(radius * sin)
}

// turn returns sine and cosine of t whole turns, 0 < t < 1: Cephes' polynomials on an eighth of a turn.
func turn(t float32) (sin, cos float32) {
	quarter := float32(int32(t*4 + 0.5))
	x := (t - float32(quarter*0.25)) * 6.28318530717958648
	z := x * x
	s := float32(-1.9515295891e-4)
	s = float32(s*z) + 8.3321608736e-3
	s = float32(s*z) + -1.6666654611e-1
	s = float32(float32(s*z)*x) + x
	c := float32(2.443315711809948e-5)
	c = float32(c*z) + -1.388731625493765e-3
	c = float32(c*z) + 4.166664568298827e-2
	c = float32(float32(c*z)*z) + (1 - float32(0.5*z))
	switch int32(quarter) & 3 {
	case 1:
		s, c = c, -s
	case 2:
		s, c = -s, -c
	case 3:
		s, c = -c, s
	}
	return s, c
}

func (n *Normal) weigh() {
	for r := range n.Rows {
		var logProb, entropy float32
		for i := range n.N {
			raw, l := n.Raw[i*n.RawLD+r], n.Log[i*n.LD+r]
			z := (raw - n.Mean[i*n.LD+r]) * exp(-l)
			logProb -= float32(float32(0.5*z)*z) + (l + logSqrt2Pi)
			entropy += l + (logSqrt2Pi + 0.5)
			if n.Tanh {
				size := max(raw, -raw)
				soft := max(-2*raw, 0) + log(1+exp(-2*size))
				logProb -= 2 * (0.693147180559945309 - raw - soft)
			}
		}
		if n.Tanh {
			entropy = -logProb
		}
		n.LogProb[r] += logProb
		n.Entropy[r] += entropy
	}
}

func (n *Normal) descend() {
	for r := range n.Rows {
		slope := n.Slope[r]
		for i := range n.N {
			raw, mean, l := n.Raw[i*n.RawLD+r], &n.Mean[i*n.LD+r], &n.Log[i*n.LD+r]
			apart, inverse := raw-*mean, exp(-*l)
			z := apart * inverse
			coef, dMean, dLog := n.Coef, -float32(slope*z)*inverse, float32(slope*(1-float32(z*z)))
			if n.Tanh {
				coef *= n.Weight[r]
				bend := tanh(raw) * coef
				bend += bend
				dMean += bend
				dLog += float32(bend * apart)
			}
			*mean, *l = dMean, dLog-coef
		}
	}
}

// surrogates is loss for joint log-probabilities: it writes Slope, replaces Value by its gradient and Entropies by ratios.
func (l *Loss) surrogates() {
	for r := range l.Rows {
		logRatio := l.NewLogProb[r] - l.OldLogProb[r]
		l.Slope[r] = l.surrogate(r, logRatio, l.Entropies[r])
		l.Entropies[r] = min(exp(logRatio), l.High)
		l.value(r)
	}
}
