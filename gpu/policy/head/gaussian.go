package head

import (
	"fmt"
	"math"
)

// Squash is the function that bounds the samples of a Box.
type Squash string

// Squashes.
const (
	Free Squash = ""     // nothing: the environment's bounds cut actions off
	Tanh Squash = "tanh" // actions are tanh of the sample
)

// Gaussian is a normal distribution of each of N elements, independent of the others. Its parameters are N means, then N
// logarithms of standard deviations. An action is the number that was drawn, before it is squashed or cut off; with Tanh,
// densities are of its tanh. A logarithm beyond LogStd counts as the nearer end, and has no gradient.
type Gaussian struct {
	N      int    `json:"n"`
	Squash Squash `json:"squash,omitempty"`
	LogStd Range  `json:"log_std,omitzero"` // the zero value is DefaultLogStd
}

// Range is a range of numbers.
type Range struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// DefaultLogStd is the default range of logarithms of standard deviations.
var DefaultLogStd = Range{Min: -5, Max: 2}

// WidestLogStd bounds every LogStd.
var WidestLogStd = Range{Min: -20, Max: 20}

// Within reports whether a range that is not empty lies in another.
func (r Range) Within(other Range) bool {
	return r.Min >= other.Min && r.Min < r.Max && r.Max <= other.Max
}

// Clamp returns the number of the range that is nearest to x.
func (r Range) Clamp(x float64) float64 { return min(max(x, r.Min), r.Max) }

var _ Dist = (*Gaussian)(nil)

// LogStdRange is the range of the logarithms of the standard deviations.
func (g *Gaussian) LogStdRange() Range {
	if g.LogStd == (Range{}) {
		return DefaultLogStd
	}
	return g.LogStd
}

// logStd is the logarithm of the standard deviation of element i.
func (g *Gaussian) logStd(params []float64, i int) float64 {
	return g.LogStdRange().Clamp(params[g.N+i])
}

// Elems is 2N.
func (g *Gaussian) Elems() int { return 2 * g.N }

// Size is N.
func (g *Gaussian) Size() int { return g.N }

// Choices is 0.
func (g *Gaussian) Choices() int { return 0 }

// Continuous is true.
func (g *Gaussian) Continuous() bool { return true }

// String is such as gaussian(2), gaussian(2, tanh) or gaussian(2, log_std -3 to 1).
func (g *Gaussian) String() string {
	text := fmt.Sprintf("gaussian(%d", g.N)
	if g.Squash != Free {
		text += fmt.Sprintf(", %s", g.Squash)
	}
	if r := g.LogStdRange(); r != DefaultLogStd {
		text += fmt.Sprintf(", log_std %g to %g", r.Min, r.Max)
	}
	return text + ")"
}

var logSqrt2Pi = math.Log(2*math.Pi) / 2

// correction is log(1 - tanh²(x)), without a difference that vanishes.
func correction(x float64) float64 { return 2 * (math.Ln2 - x - softplus(-2*x)) }

// softplus is log(1 + exp(x)).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// LogProb is Dist's. A squashed Gaussian's entropy has no closed form; -log π(action) estimates it.
func (g *Gaussian) LogProb(params []float64, mask []byte, action []float64) (logProb, entropy float64) {
	for i, x := range action[:g.N] {
		mean, logStd := params[i], g.logStd(params, i)
		z := (x - mean) * math.Exp(-logStd)
		logProb -= z*z/2 + logStd + logSqrt2Pi
		entropy += logStd + logSqrt2Pi + 0.5
		if g.Squash == Tanh {
			logProb -= correction(x)
		}
	}
	if g.Squash == Tanh {
		entropy = -logProb
	}
	return logProb, entropy
}

// Draws is two for each pair of elements.
func (g *Gaussian) Draws() int { return (g.N + 1) / 2 * 2 }

// Sample draws pairs of elements by the method of Box and Muller.
func (g *Gaussian) Sample(params []float64, mask []byte, u []float32, action []float64) {
	for i := range g.N {
		radius := math.Sqrt(-2 * math.Log(float64(u[i&^1])))
		sin, cos := math.Sincos(2 * math.Pi * float64(u[i|1]))
		z := radius * cos
		if i&1 == 1 {
			z = radius * sin
		}
		action[i] = params[i] + math.Exp(g.logStd(params, i))*z
	}
}

// Mode is the mean.
func (g *Gaussian) Mode(params []float64, mask []byte, action []float64) { copy(action[:g.N], params) }

// KL is Dist's. A squash does not change it.
func (g *Gaussian) KL(p, q []float64, mask []byte) (sum float64) {
	for i := range g.N {
		apart, wider := p[i]-q[i], g.logStd(p, i)-g.logStd(q, i)
		sum += (math.Exp(2*wider)+apart*apart*math.Exp(-2*g.logStd(q, i))-1)/2 - wider
	}
	return sum
}

// EstimatesEntropy reports whether the action estimates the entropy, where it has no closed form.
func EstimatesEntropy(d Dist) bool {
	g, ok := d.(*Gaussian)
	return ok && g.Squash == Tanh
}

// Gradient is Dist's. The gradient of a squashed Gaussian's entropy follows the action, which moves with mean and deviation:
// H is the mean of log σ + log(1 - tanh²(x)) over x = mean + σε. The gradient of -log π at a fixed action would be a cross
// entropy's, which is least for the policy that drew the action.
func (g *Gaussian) Gradient(d, params []float64, mask []byte, action []float64, dLogProb, dEntropy float64) {
	for i, x := range action[:g.N] {
		inverse := math.Exp(-g.logStd(params, i))
		z := (x - params[i]) * inverse
		d[i] = dLogProb * z * inverse
		d[g.N+i] = dLogProb*(z*z-1) + dEntropy
		if g.Squash == Tanh {
			bend := 2 * dEntropy * math.Tanh(x)
			d[i] -= bend
			d[g.N+i] -= bend * (x - params[i])
		}
		if g.logStd(params, i) != params[g.N+i] {
			d[g.N+i] = 0
		}
	}
}
