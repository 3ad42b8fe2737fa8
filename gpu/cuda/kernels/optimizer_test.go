package kernels

import (
	"math"
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
)

// control is one before an update.
func control() Control {
	return Control{Beta1: 0.9, Beta2: 0.999, LearningRate: 1e-3, FaultPlace: NoPlace}
}

func TestReduce_AddsUpPartsInTheirOrder(t *testing.T) {
	for _, size := range []int{1, 300} {
		r := newRig(t)
		count, part := 5, size+2
		parts := r.floats((count-1)*part + size)
		blocks := Blocks(size).X
		args := Reduce{Parts: put(r, parts...), Grad: room[float32](r, size), Squares: room[float64](r, blocks), Part: int64(part), Size: int32(size), Count: int32(count)}
		run(r, ReduceKernel, Blocks(size), args)
		want, squares := make([]float32, size), make([]float64, blocks)
		for i := range want {
			for p := range count {
				want[i] += parts[p*part+i]
			}
			squares[i/threads] += float64(want[i]) * float64(want[i])
		}
		same(t, "gradient", get[float32](r, args.Grad, size), want)
		for i, got := range get[float64](r, args.Squares, blocks) {
			if math.Abs(got-squares[i]) > 1e-13*squares[i] {
				t.Errorf("squares of block %d are %v, want %v", i, got, squares[i])
			}
		}
		runShort(r, ReduceKernel, Blocks(size), args)
	}
}

// decided runs decide on a gradient with these squares of actor and critic and these sums of the loss over ten rows.
func decided(r *rig, c Control, squares []float64, ofActor []byte, sums ...float64) (Control, Decide) {
	args := Decide{Squares: put(r, squares...), OfActor: put(r, ofActor...), Sums: put(r, sums...), Control: put(r, c),
		Blocks: int32(len(squares)), LossBlocks: int32(len(sums) / LossSums), Rows: 10}
	run(r, DecideKernel, driver.Dim{X: 1}, args)
	return get[Control](r, args.Control, 1)[0], args
}

func TestDecide_PreparesAStep(t *testing.T) {
	r := newRig(t)
	c := control()
	c.MaxNorm, c.Steps = 5, 6
	c, args := decided(r, c, []float64{9, 7, 144}, []byte{1, 1, 0}, -30, 4, 10, 0.4, -2, 3, 0.25, -10, 4, 10, 0.6, -3, 2, 0.5)
	norm := math.Sqrt(160)
	power := func(x float64, n uint64) float64 {
		y := 1.0
		for ; n > 0; n >>= 1 {
			if n&1 == 1 {
				y *= x
			}
			x *= x
		}
		return y
	}
	want := Control{Beta1: 0.9, Beta2: 0.999, MaxNorm: 5, LearningRate: 1e-3, Steps: 7, FaultPlace: NoPlace,
		Scale: [2]float32{float32(5 / (norm + 1e-6)), float32(5 / (norm + 1e-6))}, KL: 0.1,
		StepRate: float32(float64(float32(1e-3)) / (1 - power(0.9, 7))), Correct2: float32(1 / math.Sqrt(1-power(0.999, 7))),
		PolicyLoss: 4, ValueLoss: 0.4, Entropy: 2, ApproxKL: 0.1, OldApproxKL: 0.5, Clipped: 0.5, Norm: norm, ActorNorm: norm, CriticNorm: norm,
		FirstClipped: 0.5, FirstRatioError: 0.5, Made: 1, LastRate: 1e-3}
	if c != want {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
	runShort(r, DecideKernel, driver.Dim{X: 1}, args)
}

func TestDecide_ClipsActorAndCriticApart(t *testing.T) {
	r := newRig(t)
	c := control()
	c.MaxNorm, c.Apart = 7, 1
	together, _ := decided(r, c, []float64{9, 144, 7}, []byte{1, 0, 1}, make([]float64, LossSums)...)
	if all := float32(7 / (math.Sqrt(160) + 1e-6)); together.Scale != [2]float32{all, all} || together.ActorNorm != 4 || together.CriticNorm != 12 {
		t.Errorf("scales %v of norms %v and %v, clipped together", together.Scale, together.ActorNorm, together.CriticNorm)
	}
	c.ClipApart = 1
	c, _ = decided(r, c, []float64{9, 144, 7}, []byte{1, 0, 1}, make([]float64, LossSums)...)
	if c.Scale != [2]float32{1, float32(7 / (12 + 1e-6))} || c.ActorNorm != 4 || c.CriticNorm != 12 || c.Norm != math.Sqrt(160) {
		t.Errorf("scales %v of norms %v and %v of %v", c.Scale, c.ActorNorm, c.CriticNorm, c.Norm)
	}
}

func TestDecide_FollowsTheDivergence(t *testing.T) {
	rate := float32(2e-3)
	for kl, want := range map[float64]float32{0.9: rate / 1.5, 0.3: rate, 0.15: rate, 0.04: rate * 1.5, 0: rate, 99: rate / 1.5} {
		c := control()
		c.AdaptiveKL, c.RateMin, c.RateMax, c.Rate = 0.02, 1e-4, 1, rate
		c, _ = decided(newRig(t), c, []float64{1}, []byte{1}, 0, 0, 0, kl, 0, 0, 0)
		if c.Rate != want || c.LastRate != want {
			t.Errorf("a divergence of %v sets the rate to %v, want %v", kl/10, c.Rate, want)
		}
	}
	c := control()
	c.AdaptiveKL, c.RateMin, c.RateMax, c.Rate = 0.02, 1.9e-3, 2.1e-3, rate
	low, _ := decided(newRig(t), c, []float64{1}, []byte{1}, 0, 0, 0, 9, 0, 0, 0)
	high, _ := decided(newRig(t), c, []float64{1}, []byte{1}, 0, 0, 0, 0.01, 0, 0, 0)
	if low.Rate != 1.9e-3 || high.Rate != 2.1e-3 {
		t.Errorf("rates %v and %v leave their bounds", low.Rate, high.Rate)
	}
}

func TestDecide_FailsOnAGradientThatIsNotFinite(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1)} {
		r := newRig(t)
		before := control()
		c, _ := decided(r, before, []float64{1, x}, []byte{1, 0}, make([]float64, LossSums)...)
		before.Fault = GradientFault
		if c != before {
			t.Errorf("squares of %v: %+v", x, c)
		}
		adam := Adam{Params: put[float32](r, 1), M: put[float32](r, 2), V: put[float32](r, 3), Grad: put[float32](r, 4), OfActor: put[byte](r, 1),
			Control: put(r, c), Size: 1}
		run(r, AdamKernel, Blocks(1), adam)
		if p := get[float32](r, adam.Params, 1)[0]; p != 1 {
			t.Errorf("a step after a fault changes a parameter to %v", p)
		}
	}
}

func TestAdam_MakesTheStepOfTheProcessor(t *testing.T) {
	r := newRig(t)
	size := 700
	p, m, v, grad := r.floats(size), r.floats(size), r.floats(size), r.floats(size)
	for i := range v {
		v[i] *= v[i]
	}
	ofActor := []byte{1, 0, 1}
	c := control()
	c.Scale, c.StepRate, c.Correct2 = [2]float32{0.5, 0.25}, 1e-2, 1.5
	args := Adam{Params: put(r, p...), M: put(r, m...), V: put(r, v...), Grad: put(r, grad...), OfActor: put(r, ofActor...), Control: put(r, c),
		Size: int32(size), Beta1: 0.9, Keep1: 0.1, Beta2: 0.999, Keep2: 0.001, Eps: 1e-5}
	run(r, AdamKernel, Blocks(size), args)
	for i := range p {
		g := grad[i] * c.Scale[1-ofActor[i/threads]]
		m[i] = fma(args.Keep1, g, m[i]*args.Beta1)
		v[i] = fma(args.Keep2, g*g, v[i]*args.Beta2)
		root := float32(math.Sqrt(float64(v[i])))
		p[i] = fma(-c.StepRate, m[i]/fma(root, c.Correct2, args.Eps), p[i])
	}
	same(t, "first moments", get[float32](r, args.M, size), m)
	same(t, "second moments", get[float32](r, args.V, size), v)
	same(t, "parameters", get[float32](r, args.Params, size), p)
	runShort(r, AdamKernel, Blocks(size), args)
}

func TestHalt_StopsAfterTheStep(t *testing.T) {
	for kl, want := range map[float64]int32{0.03: 1, 0.02: 0} {
		r := newRig(t)
		c := control()
		c.TargetKL, c.KL = 0.02, kl
		args := Halt{Control: put(r, c)}
		run(r, HaltKernel, driver.Dim{X: 1}, args)
		if got := get[Control](r, args.Control, 1)[0].Stopped; got != want {
			t.Errorf("a divergence of %v: stopped is %d", kl, got)
		}
		if want == 1 {
			args.Control = put(r, c)
			runShort(r, HaltKernel, driver.Dim{X: 1}, args)
		}
	}
}
