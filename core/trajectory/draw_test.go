package trajectory

import (
	"bytes"
	"math"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"

	"github.com/rlhost/rlhost/hostabi"
)

// words are well mixed random bits, a word for each environment of each draw.
func words(draw int) func(env int) uint64 {
	return func(env int) uint64 { return scrambled(uint64(draw)<<20, env+1) }
}

func TestDrawActions_AreUniformOverLegalActions(t *testing.T) {
	spec := testkit.Spec(3, 2, true)
	spec.Tensors[0] = hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, Counts: []uint32{3, 4}, Start: -1}
	spec.Tensors[6].Shape[0] = 7
	const envs, draws = 64, 500
	tr := testTrajectory(t, spec, Shape{Steps: 1, Envs: envs, SoA: true})
	mask := tr.Row(Mask, 0)
	for env := range envs {
		for _, value := range []int{0, 1, 2, 3, 5} { // of the first element all, of the second one 0 and 2
			mask.Data[env*mask.StrideRow+value*mask.StrideElem] = 1
		}
	}
	var counts [2][4]int
	pairs := 0
	for draw := range draws {
		tr.DrawActions(0, words(draw))
		action := tr.Row(Action, 0)
		for env := range envs {
			a, b := int(action.Value(env, 0))+1, int(action.Value(env, 1))+1
			counts[0][a]++
			counts[1][b]++
			if a == 0 && b == 0 {
				pairs++
			}
		}
	}
	const n = envs * draws
	for part, want := range [2][4]float64{{1. / 3, 1. / 3, 1. / 3, 0}, {.5, 0, .5, 0}} {
		for value, p := range want {
			if got := float64(counts[part][value]) / n; math.Abs(got-p) > 4*math.Sqrt(p*(1-p)/n) {
				t.Errorf("element %d has the value %d in a share of %v, want %v", part, value-1, got, p)
			}
		}
	}
	if got := float64(pairs) / n; math.Abs(got-1./6) > 4*math.Sqrt(5./36/n) {
		t.Errorf("both elements have their first value in a share of %v, want 1/6: they are not independent", got)
	}
}

func TestDrawActions_FillABoxWithinItsBounds(t *testing.T) {
	inf := float32(math.Inf(1))
	spec := testkit.Spec(3, 2, false)
	spec.Tensors[0] = hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{4},
		Lows: []float32{-2, 0, -inf, -inf}, Highs: []float32{2, inf, 1, inf}}
	const envs, draws = 64, 500
	tr := testTrajectory(t, spec, Shape{Steps: 1, Envs: envs})
	var sum, squares [4]float64
	for draw := range draws {
		tr.DrawActions(0, words(draw))
		action := tr.Row(Action, 0)
		for env := range envs {
			for i := range 4 {
				v := action.Value(env, i)
				if low, high := spec.Tensors[0].Bounds(i); v < float64(low) || v > float64(high) || math.IsNaN(v) {
					t.Fatalf("element %d is %v, bounds %v..%v", i, v, low, high)
				}
				sum[i] += v
				squares[i] += v * v
			}
		}
	}
	half := math.Sqrt(2 / math.Pi) // mean of a normal number's size
	for i, want := range [4][2]float64{{0, 4 / math.Sqrt(12)}, {half, math.Sqrt(1 - half*half)}, {1 - half, math.Sqrt(1 - half*half)}, {0, 1}} {
		mean := sum[i] / (envs * draws)
		deviation := math.Sqrt(squares[i]/(envs*draws) - mean*mean)
		if math.Abs(mean-want[0]) > 0.03 || math.Abs(deviation-want[1]) > 0.03 {
			t.Errorf("element %d has mean %v and deviation %v, want %v", i, mean, deviation, want)
		}
	}
}

// Both ways of giving the words make the same actions, of every kind.
func TestDrawActionsFrom_IsDrawActions(t *testing.T) {
	choice := func(n uint32) hostabi.Tensor {
		return hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, N: n, Start: 3}
	}
	several := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, Counts: []uint32{3, 4}}
	box := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, Low: -1, High: 1}
	const envs = 37
	for what, actions := range map[string][]hostabi.Tensor{
		"one choice": {choice(2)}, "choices": {choice(5), choice(1 << 16)}, "several": {several}, "box": {box}, "all": {box, choice(2), several},
	} {
		spec := testkit.Spec(3, 2, false)
		spec.Tensors = append(actions, spec.Tensors[1:]...)
		for _, soa := range []bool{false, true} {
			one, other := testTrajectory(t, spec, Shape{Steps: 1, Envs: envs, SoA: soa}), testTrajectory(t, spec, Shape{Steps: 1, Envs: envs, SoA: soa})
			if c := &one.Schema.actions[0]; what == "one choice" && !one.Schema.isPlain(c, &one.Schema.columns[c.action]) {
				t.Error("the commonest action takes the long way")
			}
			from := make([]uint64, envs)
			for draw := range 20 {
				for env := range from {
					from[env] = words(draw)(env)
				}
				one.DrawActions(0, words(draw))
				other.DrawActionsFrom(0, from)
				for i := range actions {
					if a, b := one.Row(Action.At(i), 0), other.Row(Action.At(i), 0); !bytes.Equal(a.Data, b.Data) {
						t.Fatalf("%s, draw %d: action %d differs", what, draw, i)
					}
				}
			}
			if n := testing.AllocsPerRun(20, func() { other.DrawActionsFrom(0, from) }); n != 0 {
				t.Errorf("%s: %v allocations", what, n)
			}
		}
	}
}

// Actions of several tensors are drawn apart: none says anything of another.
func TestDrawActions_ActionsDoNotFollowEachOther(t *testing.T) {
	choice := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2}
	box := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Low: 0, High: 1}
	const envs, draws = 64, 500
	for what, action := range map[string]hostabi.Tensor{"choice": choice, "box": box} {
		spec := testkit.Spec(3, 2, false)
		spec.Tensors = append([]hostabi.Tensor{action, action, action}, spec.Tensors[1:]...)
		tr := testTrajectory(t, spec, Shape{Steps: 1, Envs: envs})
		alike := [3]int{}
		for draw := range draws {
			tr.DrawActions(0, words(draw))
			for env := range envs {
				for i := range alike {
					a, b := tr.Row(Action.At(i), 0).Value(env, 0), tr.Row(Action.At((i+1)%3), 0).Value(env, 0)
					if (a < 0.5) == (b < 0.5) {
						alike[i]++
					}
				}
			}
		}
		for i, n := range alike {
			if share := float64(n) / (envs * draws); math.Abs(share-0.5) > 0.02 {
				t.Errorf("%s: actions %d and %d are alike in %.2f of the draws, want 0.5", what, i, (i+1)%3, share)
			}
		}
	}
}
