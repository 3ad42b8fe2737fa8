package session_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// probe is an environment whose values are known: episodes of probeSteps steps with a reward each.
type probe struct {
	reward   float64
	gamma    float64
	discount float64 // of the environment; 0 = none
	multiply bool    // the discount is multiplied with gamma
	ends     plugintest.End
	sets     []string
	learned  float64 // reward that is learned from
}

const probeSteps = 5

// value is the value of an observation after so many steps of an episode. A truncated episode would have continued for ever.
func (p *probe) value(step int) float64 {
	gamma := p.gamma
	switch {
	case p.multiply:
		gamma *= p.discount
	case p.discount != 0:
		gamma = p.discount
	}
	if p.ends == plugintest.Truncates {
		return p.learned / (1 - gamma)
	}
	return p.learned * (1 - math.Pow(gamma, float64(probeSteps-step))) / (1 - gamma)
}

func (p *probe) experiment() experiment {
	script := plugintest.Script{
		Length: func(int, int) int { return probeSteps },
		Ends:   func(int, int) plugintest.End { return p.ends },
		Reward: func(plugintest.At) float32 { return float32(p.reward) },
	}
	if p.discount != 0 {
		script.Discount = func(plugintest.At) float32 { return float32(p.discount) }
	}
	if p.multiply {
		p.sets = append(p.sets, `component.learner.discount="multiply"`)
	}
	return experiment{script: script, sets: append([]string{
		"run.stop.env_steps=65536", "component.learner.lr_anneal_env_steps=65536", "policy.main.normalize_obs=true",
		fmt.Sprintf("component.learner.gamma=%v", p.gamma), "component.learner.learning_rate=5e-3",
		"component.learner.separate_grad_norms=true", "component.learner.normalize_returns=true"}, p.sets...)}
}

// Values agree with theory, whatever the scale of the rewards, also with shaped rewards or the environment's discount.
func TestS18ValuesAreThoseOfTheory(t *testing.T) {
	const over, cut = plugintest.Terminates, plugintest.Truncates
	for name, p := range map[string]probe{
		"small":     {reward: 1e-4, gamma: 0.9, ends: over, learned: 1e-4},
		"large":     {reward: 1e4, gamma: 0.9, ends: over, learned: 1e4},
		"truncated": {reward: -1e3, gamma: 0.5, ends: cut, learned: -1e3},
		"scaled":    {reward: 300, gamma: 0.9, ends: over, learned: 3, sets: []string{"env.lab.wrap=[{ reward_scale = 0.01 }]"}},
		"clipped":   {reward: 300, gamma: 0.9, ends: over, learned: 2, sets: []string{"env.lab.wrap=[{ reward_clip = 2.0 }]"}},
		"signs":     {reward: -300, gamma: 0.5, ends: cut, learned: -1, sets: []string{`env.lab.wrap=[{ reward_clip = "sign" }]`}},
		"discount":  {reward: 40, gamma: 0.9, discount: 0.5, ends: over, learned: 40},
		"discount of truncated episodes": {reward: 40, gamma: 0.9, discount: 0.5, ends: cut, learned: 40,
			sets: []string{"component.learner.vtrace=true"}},
		"discount that is always 1, multiplied": {reward: 40, gamma: 0.9, discount: 1, multiply: true, ends: over, learned: 40},
		"multiplied discount, v-trace": {reward: 40, gamma: 0.8, discount: 0.5, multiply: true, ends: cut, learned: 40,
			sets: []string{"component.learner.vtrace=true"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := p.experiment().must(t)
			p.compare(t, o, (*labRow).at)
			for _, e := range o.episodes {
				want := p.reward * probeSteps
				if e.Length != probeSteps || !(math.Abs(float64(e.Return)-want) <= 1e-5*math.Abs(want)) {
					t.Fatalf("an episode of %d steps has the return %v, want the raw %v", e.Length, e.Return, want)
				}
			}
		})
	}
}

// compare holds the values of the last trajectories to theory. at returns how many steps an episode has made.
func (p *probe) compare(t *testing.T, o *outcome, at func(*labRow) int) {
	t.Helper()
	var sum, count [probeSteps]float64
	for _, b := range o.blocks[len(o.blocks)-8:] {
		for step := range b.Schema.Shape.Steps {
			for env := range b.Schema.Shape.Envs {
				r := b.row(step, env)
				sum[at(&r)] += float64(r.value)
				count[at(&r)]++
			}
		}
	}
	for step := range sum {
		if got, want := sum[step]/count[step], p.value(step); !(math.Abs(got-want) <= 0.005*math.Abs(want)) {
			t.Errorf("value after %d steps is %v, want %v", step, got, want)
		}
	}
}

// The learner learns with the discount that a real guest writes; the guest's figures do not disturb it.
func TestS17TheDiscountOfAGuestIsLearnedWith(t *testing.T) {
	t.Parallel()
	p := probe{reward: 40, gamma: 0.9, discount: 0.5, ends: plugintest.Terminates, learned: 40}
	x := p.experiment()
	x.plugin = labGuest(t, "discount")
	p.compare(t, x.must(t), func(r *labRow) int { return slices.Index(r.obs[:], 1) })
}

// everything combines all cases of this file.
func everything() experiment {
	return experiment{
		script: func() plugintest.Script {
			s := uneven()
			s.Discount = func(at plugintest.At) float32 { return 1 - 0.1*float32(at.Env%3) }
			s.Reward = func(at plugintest.At) float32 { return float32(1000*at.Step - 300*at.Env) }
			return s
		}(),
		sets: []string{"component.learner.normalize_returns=true", "component.learner.adaptive_kl=0.001", "component.learner.kl_coef=0.1",
			"component.learner.lr_anneal_env_steps=0", "env.lab.wrap=[{ reward_scale = 0.5 }, { reward_clip = 600.0 }]"},
	}
}

// Statistics of returns and a learning rate that follows the divergence are saved with the learner: a resumed run is the
// unbroken one. The first minibatch has the ratio 1.
func TestS18AndS23AResumedRunIsTheUnbrokenOne(t *testing.T) {
	whole := everything().must(t)
	if err := only(whole.reported("losses/first_ratio_error"), 0); err != nil {
		t.Error(err)
	}
	half := everything()
	half.sets = append(half.sets, "run.stop.env_steps=256")
	stopped := half.must(t)
	rest := everything()
	rest.resume, rest.resumes = stopped.states, 1
	resumed := rest.must(t)
	if got := append(slices.Clone(stopped.hashes), resumed.hashes...); !slices.Equal(got, whole.hashes) {
		t.Errorf("parameters %.8s, want %.8s", got, whole.hashes)
	}
	rates := whole.reported("charts/learning_rate")
	if got := resumed.reported("charts/learning_rate"); !slices.Equal(got, rates[2:]) || slices.Max(rates) == slices.Min(rates) {
		t.Errorf("learning rates %v of the unbroken run, %v of the resumed one", rates, got)
	}
}

// Shaped rewards are in a separate column; rewards and returns do not change.
func TestS18ShapedRewardsAreAColumnOfTheirOwn(t *testing.T) {
	shaped := everything().must(t)
	for _, b := range shaped.blocks {
		raw := b.Float32(trajectory.Reward)
		for i, got := range b.Float32(trajectory.ShapedReward) {
			if want := max(-600, min(600, raw[i]/2)); got != want {
				t.Fatalf("reward %v is shaped to %v, want %v", raw[i], got, want)
			}
		}
	}
	plain := everything()
	plain.sets = append(plain.sets, "env.lab.wrap=[]")
	raw := plain.must(t)
	if raw.blocks[0].Schema.Has(trajectory.ShapedReward) || !shaped.blocks[0].Schema.Has(trajectory.ShapedReward) {
		t.Error("the column is to exist where rewards are shaped, and nowhere else")
	}
	if len(raw.episodes) == 0 || raw.episodes[0].Return != shaped.episodes[0].Return || raw.hashes[0] == shaped.hashes[0] {
		t.Errorf("returns %v raw and %v shaped, parameters %.8s and %.8s", raw.episodes[0], shaped.episodes[0], raw.hashes[0], shaped.hashes[0])
	}
}

// Rewards times a power of two teach the same, except for rounding and the epsilon of the advantages.
func TestS18TheScaleOfRewardsIsNoScaleOfTheLearning(t *testing.T) {
	loss := func(scale float32, inputs string) []float64 {
		x := everything()
		x.script.Reward = func(at plugintest.At) float32 { return scale * float32(1+at.Step) }
		x.sets[len(x.sets)-1] = "component.rollout.splits=2"
		x.sets = append(x.sets, "policy.main.normalize_obs=true", "policy.main.inputs="+inputs, "run.stop.env_steps=1024")
		return x.must(t).reported("losses/value_loss")
	}
	for _, inputs := range []string{"[]", `["last_reward"]`} {
		want := loss(1, inputs)
		last := len(want) - 1
		for _, scale := range []float32{1.0 / (1 << 13), 1 << 13} {
			if got := loss(scale, inputs); !near(got[last], want[last], 0.01) || want[last] == 0 {
				t.Errorf("inputs %s, rewards × %v: value losses %v, want about %v", inputs, scale, got, want)
			}
		}
	}
}

// A guest that writes an invalid discount is at fault, and the error names the environment.
func TestS17ADiscountBeyondOneIsAFault(t *testing.T) {
	script := plugintest.Script{Discount: func(at plugintest.At) float32 {
		if at.Env == 3 && at.Step == 2 {
			return 1.5
		}
		return 1
	}}
	o := experiment{script: script, sets: []string{"component.rollout.max_restarts=0"}}.run(t)
	if o.err == nil || !strings.Contains(o.err.Error(), "discount is 1.5, want 0 to 1") || !strings.Contains(o.err.Error(), "env 3") {
		t.Errorf("got %v, want the environment that wrote it", o.err)
	}
}
