package wrap

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
)

// rewardNormalize divides rewards by the standard deviation of each environment's discounted return, as Gymnasium's
// NormalizeReward does, and cuts them off: the deviation of the first returns says little.
type rewardNormalize struct {
	rewards
	Values struct {
		Gamma   float64 `toml:"gamma" doc:"Divides rewards by the standard deviation of the return with this discount." range:"0 to 1"`
		Epsilon float64 `toml:"epsilon" doc:"Added to the variance." range:"above 0, up to 1"`
		Clip    float64 `toml:"clip" doc:"Clips the normalised reward to this and its negative." range:"above 0, up to 1e12"`
	} `toml:"reward_normalize"`
}

func newRewardNormalize() wrapper {
	c := &rewardNormalize{}
	c.Values.Gamma, c.Values.Epsilon, c.Values.Clip = 0.99, 1e-8, 10
	return c
}

func (c *rewardNormalize) validate(bad func(key, reason, help string)) {
	if g := c.Values.Gamma; !(g >= 0 && g <= 1) {
		bad("reward_normalize.gamma", fmt.Sprintf("is %g, want 0 to 1", g), "")
	}
	if e := c.Values.Epsilon; !(e > 0 && e <= 1) {
		bad("reward_normalize.epsilon", fmt.Sprintf("is %g, want more than 0 and 1 at most", e), "")
	}
	if b := c.Values.Clip; !(b > 0 && b <= 1e12) {
		bad("reward_normalize.clip", fmt.Sprintf("is %g, want more than 0 and 1e12 at most", b), "")
	}
}

func (c *rewardNormalize) around(w *wrapped) layer {
	l := &normalizeLayer{shapeLayer: *shapedBy(w, nil), gamma: c.Values.Gamma, epsilon: c.Values.Epsilon, clip: float32(c.Values.Clip), each: w.plugin.spec.Agents()}
	l.returns = make([]discounted, w.o.Envs*l.each)
	for i := range l.returns {
		l.returns[i] = discounted{variance: 1, count: 1e-4}
	}
	return l
}

type normalizeLayer struct {
	shapeLayer
	gamma, epsilon float64
	clip           float32
	each           int
	returns        []discounted // by agent
}

// discounted is the discounted return of a running episode, and mean and variance of all that there have been.
type discounted struct{ sum, mean, variance, count float64 }

// add takes in a reward.
func (d *discounted) add(r, gamma float64) {
	d.sum = d.sum*gamma + r
	delta, total := d.sum-d.mean, d.count+1
	d.mean += delta / total
	d.variance = (d.variance*d.count + delta*delta*d.count/total) / total
	d.count = total
}

// scaled is a reward divided by the deviation.
func (d *discounted) scaled(r float32, epsilon float64) float32 {
	return float32(float64(r) / math.Sqrt(d.variance+epsilon))
}

// begin keeps the statistics of returns, also where an environment begins again after a fault.
func (l *normalizeLayer) begin(index int, _ uint64, _ bool) {
	for i := range l.each {
		l.returns[index*l.each+i].sum = 0
	}
}

func (l *normalizeLayer) after(t int) error {
	if !l.tr.Schema.Has(trajectory.ShapedReward) {
		return nil
	}
	shaped, from := l.tr.Row(trajectory.ShapedReward, t).Float32(), l.tr.Row(l.from, t).Float32()
	for i, part := range l.w.part {
		if part == 0 {
			continue
		}
		for k, end := l.tr.Schema.RowsOf(i); k < end; k++ {
			if l.w.ends.idle[i] != 0 {
				shaped[k] = 0
				continue
			}
			d := &l.returns[k]
			d.add(float64(from[k]), l.gamma)
			shaped[k] = within(d.scaled(from[k], l.epsilon), l.clip)
			if l.w.ends.ended(i, k) {
				d.sum = 0
			}
		}
	}
	return nil
}

func (l *normalizeLayer) bytes() int { return 32 * l.each }

func (l *normalizeLayer) save(index int, dst []byte) {
	for i, d := range l.returns[index*l.each:][:l.each] {
		for k, x := range [4]float64{d.sum, d.mean, d.variance, d.count} {
			binary.LittleEndian.PutUint64(dst[32*i+8*k:], math.Float64bits(x))
		}
	}
}

func (l *normalizeLayer) load(index int, src []byte) {
	number := func(at int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(src[at:])) }
	for i := range l.each {
		l.returns[index*l.each+i] = discounted{number(32 * i), number(32*i + 8), number(32*i + 16), number(32*i + 24)}
	}
}

// resume takes over statistics. Statistics of returns that are NaN, as from a damaged file, would stay NaN for ever.
func (l *normalizeLayer) resume(index int, src []byte) {
	own := slices.Clone(l.returns[index*l.each:][:l.each])
	l.load(index, src)
	for i := range own {
		d := &l.returns[index*l.each+i]
		if !(math.Abs(d.mean) <= math.MaxFloat64 && d.variance >= 0 && d.variance <= math.MaxFloat64 && d.count > 0 && d.count <= math.MaxFloat64) {
			*d = own[i]
		}
		d.sum = 0
	}
}
