package session_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// core is the setting of a network that keeps a state of 8 numbers, or twice as many, and is learned in chunks.
func core(kind string, chunk int) string {
	return fmt.Sprintf(`policy.main.net={ nodes = [{ name = "core", in = ["obs"], %s = { size = 8 } }], chunk = %d }`, kind, chunk)
}

// stepwise is the reference of a policy's state: it acts on every episode alone, step by step, with the versions that acted.
type stepwise struct {
	network *policy.Network
	kept    map[[2]int][2][]float32 // by environment and episode, before and after its newest row
	at      map[[2]int]int          // that row
	wrong   []string
	rows    int
	finals  int // values of last observations
}

// see compares an actor's inputs and outputs with the reference.
func (s *stepwise) see(w *policy.Weights, requests []policy.Request) {
	for i := range requests {
		for row := range requests[i].Len() {
			s.row(w, &requests[i], row)
		}
	}
}

func (s *stepwise) row(w *policy.Weights, r *policy.Request, row int) {
	obs := elements(r.Obs[0], row)
	env, step := int(obs[plugintest.ObsEnv]), int(obs[plugintest.ObsStep])
	key := [2]int{env, int(obs[plugintest.ObsEpisode])}
	elems := s.network.State()
	state := make([]float32, elems)
	if step > 0 {
		switch {
		case s.at[key] == step-1:
			copy(state, s.kept[key][1])
		case s.at[key] == step && r.Action == nil: // the last observation is also in the row after an episode
			copy(state, s.kept[key][0])
		default:
			s.say("environment %d episode %d is acted on at step %d after step %d", env, key[1], step, s.at[key])
		}
	}
	if running := r.Age[row] > 0; running != (step > 0) {
		s.say("environment %d episode %d step %d: age %d", env, key[1], step, r.Age[row])
	}
	g := policy.NewGraph(s.network, w.Params)
	g.State = state
	x := make([]float32, len(obs))
	policy.NormalizeRow(x, obs[:], 1, w.ObsMean, w.ObsScale)
	_, value := g.Forward(x, 1)
	if !near(float64(r.Value[row]), value[0], 1e-4) {
		s.say("environment %d episode %d step %d: value %v, want %v", env, key[1], step, r.Value[row], value[0])
	}
	s.rows++
	if r.Action == nil {
		s.finals++
		return
	}
	out := r.StateOut.Float32()[row*r.StateOut.StrideRow/4:][:elems]
	for i, want := range g.StateOut {
		if math.Abs(float64(out[i]-want)) > 1e-4 {
			s.say("environment %d episode %d step %d: state %v, want %v", env, key[1], step, out, g.StateOut)
			break
		}
	}
	s.kept[key], s.at[key] = [2][]float32{state, slices.Clone(out)}, step
}

func (s *stepwise) say(format string, args ...any) {
	if len(s.wrong) < 5 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

// wrap returns a backend whose actors are compared with the reference.
func (s *stepwise) wrap(b policy.Backend) policy.Backend {
	s.kept, s.at = map[[2]int][2][]float32{}, map[[2]int]int{}
	var weights policy.Weights
	y := &spy{Backend: b, loaded: func(w policy.Weights) {
		weights = policy.Weights{Params: slices.Clone(w.Params), ObsMean: slices.Clone(w.ObsMean), ObsScale: slices.Clone(w.ObsScale)}
	}}
	y.acted = func(requests []policy.Request) { s.see(&weights, requests) }
	y.compiled = func(n *policy.Network) {
		copied := n.Clone()
		s.network = &copied
	}
	return y
}

// apart is a network whose policy and value keep a state each.
const apart = `policy.main.net={ nodes = [{ name = "actor.core", in = ["obs"], lstm = { size = 6 } },
	{ name = "critic.core", in = ["obs"], gru = { size = 5 } }], chunk = 8 }`

// The state that inference gives a policy is the one that it kept of the running episode (of the ended one for the value of its last
// observation), however episodes end, blocks are cut and requests are batched.
func TestS19StateIsThatOfTheEpisode(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		for _, c := range []struct {
			net   string
			limit int
			rows  int
		}{{core("gru", 4), 0, 1024}, {core("lstm", 1), 5, 3}, {core("gru", 16), 5, 1}, {apart, 0, 7}} {
			t.Run(fmt.Sprint(mode, " limit ", c.limit, " rows ", c.rows), func(t *testing.T) {
				script := uneven()
				script.Autoreset = mode
				script.Length = func(env, episode int) int { return 1 + (7*env+11*episode)%37 }
				var s stepwise
				o := experiment{script: script, backend: s.wrap, sets: []string{c.net, "policy.main.normalize_obs=true",
					limitOf(c.limit), fmt.Sprint("component.inference.max_rows=", c.rows)}}.must(t)
				if len(s.wrong) > 0 {
					t.Errorf("%s", strings.Join(s.wrong, "\n"))
				}
				if s.rows < 512 || s.finals < 32 {
					t.Errorf("%d rows, %d of them for their value alone", s.rows, s.finals)
				}
				if err := only(o.reported("losses/first_ratio_error"), 0); err != nil {
					t.Errorf("first ratios: %v", err)
				}
			})
		}
	}
}

// A learner that has acted computes, of burn-in, the states that the actors had: with zero lag the first ratios behind it are 1 in every
// bit, and every env step that is not lost is trained on.
func TestS19BurnInEndsInTheStateThatActed(t *testing.T) {
	for _, net := range []string{core("gru", 4), apart} {
		script := uneven()
		script.Length = func(env, episode int) int { return 1 + (7*env+11*episode)%37 }
		o := experiment{script: script, sets: []string{net, "policy.main.normalize_obs=true", "component.learner.burn_in_rows=3"}}.must(t)
		if err := only(o.reported("losses/first_ratio_error"), 0); err != nil {
			t.Errorf("%s: first ratios: %v", net, err)
		}
		learned := 0.0
		for _, n := range o.reported("losses/valid_rows") {
			learned += n
		}
		if made, trained := o.stats["rollout/env_steps"], o.stats[component.CounterTrained]; trained != made || !(learned > 0 && learned < 0.7*made) {
			t.Errorf("%s: of %v env steps %v are trained on, and %v rows learned from", net, made, trained, learned)
		}
	}
}

// forgetting has actors whose state is zero where a chunk of so many rows begins, also in the state stored for the learner.
func forgetting(chunk int) func(policy.Backend) policy.Backend {
	return func(b policy.Backend) policy.Backend {
		return &spy{Backend: b, acted: func(requests []policy.Request) {
			for i := range requests {
				r := &requests[i]
				if r.Action == nil || (r.Step+1)%uint64(chunk) != 0 {
					continue
				}
				for row := range r.Len() {
					clear(r.StateOut.Float32()[row*r.StateOut.StrideRow/4:][:r.StateOut.Elems])
				}
			}
		}}
	}
}

// Chunks of k+1 rows learn to remember for k steps. Shorter chunks learn only as far as the stored state reaches; where that is
// zero, they learn nothing. Here a cue is asked for three steps later, and a chunk of four rows begins with each episode.
func TestS19MemoryIsLearnedByChunksThatHoldIt(t *testing.T) {
	for chunk, learns := range map[int]bool{4: true, 2: false} {
		o := experiment{load: guest("memory@1"), backend: forgetting(chunk), sets: []string{
			fmt.Sprintf(`policy.main.net={ hidden = [16], core = { kind = "gru", size = 16 }, chunk = %d }`, chunk),
			"env.lab.args.delay=3", "run.stop.env_steps=24576", "component.learner.lr_anneal_env_steps=0",
		}}.must(t)
		score := o.stats[component.GaugeMeanReturn]
		if learned := score > 0.9; learned != learns || !learned && !(score < 0.7) {
			t.Errorf("chunks of %d come to %v", chunk, score)
		}
		if err := only(o.reported("losses/first_ratio_error"), 0); err != nil {
			t.Errorf("chunks of %d: first ratios: %v", chunk, err)
		}
	}
}
