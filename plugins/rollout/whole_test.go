package rollout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

func wholeEpisodes(c *config) { c.WholeEpisodes = true }

// wholeLength is how long an episode of an environment is, where blocks have 12 steps.
func wholeLength(env int) int { return 1 + (5*env+3)%11 }

// wholeScript has masks, both kinds of ends and rewards that differ from step to step. Environments that are over play on, with rewards and
// ends that nobody may see.
func wholeScript(mode hostabi.Autoreset) plugintest.Script {
	return plugintest.Script{Autoreset: mode, Actions: 3,
		Length: func(env, episode int) int {
			if episode > 0 {
				return 1 + env%2
			}
			return wholeLength(env)
		},
		Ends: func(env, episode int) plugintest.End {
			if (env+episode)%3 == 0 {
				return plugintest.Truncates
			}
			return plugintest.Terminates
		},
		Reward: func(at plugintest.At) float32 { return float32(1+at.Step) + 1000*float32(at.Episode) },
		Legal:  func(at plugintest.At, action int) bool { return (at.Step+at.Env+action)%3 != 0 },
	}
}

// elemsOf returns an environment's observation in a row, in either layout.
func elemsOf(tr trajectory.Trajectory, c trajectory.Column, row, env int) (o [plugintest.ObsElems]float32) {
	m := tr.Row(c, row)
	for i := range o {
		o[i] = float32(m.Value(env, i))
	}
	return o
}

// valueOf is what a policy of these tests thinks of an observation.
func valueOf(tr trajectory.Trajectory, c trajectory.Column, row, env int) float32 {
	o := elemsOf(tr, c, row, env)
	return o[plugintest.ObsStep]/4 + o[plugintest.ObsEnv]/8
}

// legalRig answers with legal actions and values of the observations.
func legalRig(t testing.TB, o rigOptions) *rig {
	r := newRig(t, o)
	r.judge = func(tr trajectory.Trajectory, q trajectory.ActRequest) {
		n := tr.Schema.Rows()
		for env := range n {
			tr.Float32(trajectory.Value)[q.T*n+env] = valueOf(tr, trajectory.Obs, q.T, env)
			if !q.ValueOnly {
				tr.FirstLegal(env, q.T)
			}
		}
		if !q.Bootstrap {
			return
		}
		for env, flag := range tr.Row(trajectory.Truncated, q.T-1).Data {
			if flag != 0 {
				tr.Float32(trajectory.Bootstrap)[(q.T-1)*n+env] = valueOf(tr, trajectory.FinalObs, 0, env)
			}
		}
	}
	return r
}

// Each column of a block is one episode, from its reset to its end, and padding. Returns and advantages are as in the episodes alone, whatever
// the environments do afterwards, and each episode is told once.
func TestWholeEpisodes_FillColumns(t *testing.T) {
	const steps = 12
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		for _, layout := range []string{"aos", "soa"} {
			t.Run(fmt.Sprint(mode, layout), func(t *testing.T) {
				r := legalRig(t, rigOptions{script: wholeScript(mode), config: func(c *config) {
					c.Envs, c.Splits, c.Horizon, c.Layout = 10, 2, steps, layout
					wholeEpisodes(c)
				}})
				valid, blocks := 0, 0
				r.eachBlock(t, func(m *hostabi.Message, tr trajectory.Trajectory) {
					blocks++
					longest, first := 0, int(tr.Meta().FirstEnv)
					for env := range tr.Schema.Shape.Envs {
						checkColumn(t, tr, env, wholeLength(first+env))
						longest = max(longest, wholeLength(first+env))
						valid += wholeLength(first + env)
					}
					checkEpisodeAdvantages(t, tr)
					if asks := asksOf(r, m.Handle); asks != longest+1 {
						t.Errorf("%d requests for a block whose longest episode has %d steps", asks, longest)
					}
				})
				r.MustRun(func() bool { return blocks >= 6 })
				if got := r.counter("rollout/env_steps"); got != uint64(valid) {
					t.Errorf("%d env steps counted, %d are valid", got, valid)
				}
				if len(r.episodes) != 5*blocks {
					t.Errorf("%d episodes told of %d blocks of 5 environments", len(r.episodes), blocks)
				}
				for _, e := range r.episodes {
					n := wholeLength(int(e.Env))
					if int(e.Length) != n || e.Return != float32(n*(n+1)/2) || e.Terminated == (e.Env%3 == 0) {
						t.Errorf("told %+v of an episode of %d steps", e, n)
					}
				}
				if cut := r.counter("rollout/cut_episodes"); cut != 0 {
					t.Errorf("%d episodes were cut", cut)
				}
			})
		}
	}
}

// asksOf counts the requests for a block.
func asksOf(r *rig, block hostabi.Handle) (n int) {
	for _, m := range r.asked {
		if m.Handle == block {
			n++
		}
	}
	return n
}

// checkColumn holds an environment's column against an episode of so many steps that ends by itself.
func checkColumn(t *testing.T, tr trajectory.Trajectory, env, length int) {
	t.Helper()
	n := tr.Schema.Shape.Envs
	for row := range tr.Schema.Shape.Steps {
		i, o := row*n+env, elemsOf(tr, trajectory.Obs, row, env)
		reward, end := tr.Float32(trajectory.Reward)[i], tr.Bytes(trajectory.Terminated)[i]+tr.Bytes(trajectory.Truncated)[i]
		in := row < length
		if got := tr.Bytes(trajectory.Valid)[i] != 0; got != in {
			t.Errorf("row %d of environment %v is valid: %t, of an episode of %d steps", row, o[plugintest.ObsEnv], got, length)
		}
		switch {
		case in && (o[plugintest.ObsStep] != float32(row) || o[plugintest.ObsEpisode] != 0 || reward != float32(row+1) || (end == 1) != (row == length-1)):
			t.Errorf("row %d of an episode of %d steps observes %v, has reward %v and %d ends", row, length, o, reward, end)
		case !in && (reward != 0 || end != 0):
			t.Errorf("padding has reward %v and %d ends", reward, end)
		}
		if _, what := tr.Outside(env, row); what != "" {
			t.Errorf("row %d of environment %d: %s", row, env, what)
		}
		if mask := tr.Row(trajectory.Mask, row); mask.Data[env*mask.StrideRow+int(tr.Int32(trajectory.Action)[i])*mask.StrideElem] == 0 {
			t.Errorf("the action in row %d of environment %d is not legal", row, env)
		}
	}
	if final := elemsOf(tr, trajectory.FinalObs, 0, env); final[plugintest.ObsStep] != float32(length) || final[plugintest.ObsEpisode] != 0 {
		t.Errorf("the last observation of an episode of %d steps is %v", length, final)
	}
	if _, err := tr.CheckObs(tr.Schema.Shape.Steps); err != nil {
		t.Error(err)
	}
}

// checkEpisodeAdvantages compares advantages with the advantages in the episodes alone, by γ = 0.9 and λ = 0.5.
func checkEpisodeAdvantages(t *testing.T, tr trajectory.Trajectory) {
	t.Helper()
	got, n := advantages(t, tr), tr.Schema.Shape.Envs
	for env := range n {
		length := wholeLength(int(tr.Meta().FirstEnv) + env)
		next, carry := 0.0, 0.0
		if last := (length-1)*n + env; tr.Bytes(trajectory.Truncated)[last] != 0 {
			next = float64(valueOf(tr, trajectory.FinalObs, 0, env))
		}
		want := make([]float64, length)
		for row := length - 1; row >= 0; row-- {
			v := float64(valueOf(tr, trajectory.Obs, row, env))
			carry = float64(row+1) + 0.9*next - v + 0.45*carry
			want[row], next = carry, v
		}
		for row := range tr.Schema.Shape.Steps {
			w := 0.0
			if row < length {
				w = want[row]
			}
			if d := float64(got[row*n+env]) - w; d > 1e-4 || d < -1e-4 {
				t.Errorf("advantage of row %d of an episode of %d steps is %v, want %v", row, length, got[row*n+env], w)
			}
		}
	}
}

// An environment's episodes do not depend on when other environments end theirs, and no two of them begin alike.
func TestS1WholeEpisodesDoNotDependOnSplits(t *testing.T) {
	var first map[string]string
	for _, splits := range []int{1, 2, 5} {
		r := legalRig(t, rigOptions{script: wholeScript(hostabi.SameStep), run: component.Run{Seed: 9}, config: func(c *config) {
			c.Envs, c.Splits, c.Horizon = 10, splits, 12
			wholeEpisodes(c)
		}})
		columns, chances := map[string]string{}, map[float32]bool{}
		r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
			n, meta := tr.Schema.Shape.Envs, tr.Meta()
			if meta.Sequence > 3 {
				return
			}
			for env := range n {
				bits := ""
				for row := range wholeLength(int(meta.FirstEnv) + env) {
					o := elemsOf(tr, trajectory.Obs, row, env)
					bits += fmt.Sprint(o, tr.Int32(trajectory.Action)[row*n+env], meta.FirstStep)
					if row == 0 {
						chances[o[plugintest.ObsChance]] = true
					}
				}
				columns[fmt.Sprint(meta.Sequence, int(meta.FirstEnv)+env)] = bits
			}
		})
		r.MustRun(func() bool { return len(columns) == 40 })
		if len(chances) != 40 {
			t.Errorf("%d beginnings of 40 episodes", len(chances))
		}
		if first == nil {
			first = columns
		}
		for key, bits := range columns {
			if bits != first[key] {
				t.Errorf("%d splits: block and environment %s have\n%s, want\n%s", splits, key, bits, first[key])
			}
		}
	}
}

// An episode that is longer than a block ends with it, as truncated with the value of its last observation. The first is named.
func TestWholeEpisodes_CutsLongOnes(t *testing.T) {
	script := plugintest.Script{Length: func(env, _ int) int { return 3 + 4*(env%2) }}
	r := legalRig(t, rigOptions{script: script, config: func(c *config) { c.Envs, c.Splits, c.Horizon = 4, 1, 5; wholeEpisodes(c) }})
	blocks := 0
	r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
		blocks++
		for env := range 4 {
			last := 4*4 + env
			if env%2 == 0 {
				last = 2*4 + env
			}
			cut := tr.Bytes(trajectory.Truncated)[last] != 0
			switch {
			case tr.Bytes(trajectory.Valid)[last] == 0 || cut != (env%2 != 0) || tr.Bytes(trajectory.Terminated)[last] != 0 == cut:
				t.Errorf("the last row of environment %d is truncated: %t", env, cut)
			case cut && tr.Float32(trajectory.Bootstrap)[last] != 5.0/4+float32(env)/8:
				t.Errorf("bootstrap value %v", tr.Float32(trajectory.Bootstrap)[last])
			case cut && elemsOf(tr, trajectory.FinalObs, 0, env)[plugintest.ObsStep] != 5:
				t.Errorf("last observation %v", elemsOf(tr, trajectory.FinalObs, 0, env))
			}
			if o := elemsOf(tr, trajectory.Obs, 0, env); o[plugintest.ObsStep] != 0 {
				t.Errorf("a block begins with %v", o)
			}
		}
	})
	r.MustRun(func() bool { return blocks >= 3 })
	if cut := r.counter("rollout/cut_episodes"); cut < uint64(2*blocks) {
		t.Errorf("%d episodes cut in %d blocks", cut, blocks)
	}
	if log := r.Log.String(); strings.Count(log, "longer than a block") != 1 || !strings.Contains(log, "env=1 horizon=5") {
		t.Errorf("log %s", log)
	}
	if slices.ContainsFunc(r.episodes, func(e trajectory.Episode) bool { return e.Length != 3 }) {
		t.Errorf("told of cut episodes: %+v", r.episodes)
	}
}

// Whatever is lost and when, a column is one episode, which an end or the loss closes, and env steps add up. The losses are random; the seed
// is told.
func TestWholeEpisodes_SurviveLosses(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		losses := 0
		p := mortal{plugintest.New(wholeScript([]hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled}[seed%3])), func(string, int, int) []env.Span {
			if losses >= 60 || random.IntN(6) > 0 {
				return nil
			}
			losses++
			return []env.Span{{First: random.IntN(3), Count: 1}}
		}}
		r := legalRig(t, rigOptions{plugin: p, config: func(c *config) {
			c.Envs, c.Splits, c.Horizon, c.MaxRestarts = 6, 1+random.IntN(2), 12, 1000
			wholeEpisodes(c)
		}})
		blocks, valid := 0, 0
		r.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
			blocks++
			for env := range tr.Schema.Shape.Envs {
				valid += checkClosed(t, seed, tr, env)
			}
		})
		r.MustRun(func() bool { return blocks >= 20 })
		if got := r.counter("rollout/env_steps"); got != uint64(valid) || losses == 0 {
			t.Errorf("seed %d: %d env steps counted, %d valid after %d losses", seed, got, valid, losses)
		}
	}
}

// checkClosed returns the valid rows of an environment's column, which come first and end with the end of an episode.
func checkClosed(t *testing.T, seed uint64, tr trajectory.Trajectory, env int) (rows int) {
	n := tr.Schema.Shape.Envs
	for row := range tr.Schema.Shape.Steps {
		i := row*n + env
		end := tr.Bytes(trajectory.Terminated)[i]+tr.Bytes(trajectory.Truncated)[i] != 0
		if tr.Bytes(trajectory.Valid)[i] == 0 {
			if end || tr.Float32(trajectory.Reward)[i] != 0 {
				t.Errorf("seed %d: an end or a reward in row %d of environment %d, which is padding", seed, row, env)
			}
			continue
		}
		if o := elemsOf(tr, trajectory.Obs, row, env); rows != row || int(o[plugintest.ObsStep]) != row {
			t.Errorf("seed %d: row %d of environment %d observes %v after %d valid rows", seed, row, env, o, rows)
		}
		if rows++; end != (row == tr.Schema.Shape.Steps-1 || tr.Bytes(trajectory.Valid)[i+n] == 0) {
			t.Errorf("seed %d: row %d of environment %d ends: %t", seed, row, env, end)
		}
	}
	return rows
}

// A change at any boundary leaves blocks of whole episodes, counts what it ends and drops, and begins no block within an episode.
func TestWholeEpisodes_ThroughChanges(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		for _, at := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory, component.AtEpisode} {
			for _, keep := range []bool{false, true} {
				for _, share := range []int{0, 3} {
					for row := range 7 {
						w := newWorld(t, worldOptions{mode: mode, masked: true, steps: 8, splits: 1 + row%2, async: row >= 4, config: wholeEpisodes})
						begins := 0
						w.eachBlock(t, func(_ *hostabi.Message, tr trajectory.Trajectory) {
							for env := range tr.Schema.Shape.Envs {
								if o := elemsOf(tr, trajectory.Obs, 0, env); o[plugintest.ObsStep] != 0 {
									w.errorf("%v, %v, keeping %v, row %d: a block begins with %v", mode, at, keep, row, o)
								}
								begins++
							}
						})
						w.inRow(0, row)
						w.change(2, component.EnvChange{At: at, KeepState: keep, Envs: share})
						w.run(func() bool { return begins >= 24 })
						w.balance()
						if w.errors > 0 {
							t.Fatalf("%v, %v, keeping %v, %d environments, row %d", mode, at, keep, share, row)
						}
					}
				}
			}
		}
	}
}

// An environment's episode is over when all of its agents' are. Rewards and ends that come while an agent does not act count with its last
// decision, and no decision waits for another block.
func TestWholeEpisodes_OfAgents(t *testing.T) {
	p := newTable(false,
		row{acts: []byte{1, 0}, reward: []float32{1, 2}},
		row{acts: []byte{0, 1}, reward: []float32{10, 20}},
		row{acts: []byte{1, 0}, reward: []float32{100, 200}, terminated: []byte{1, 1}})
	for _, horizon := range []int{3, 8} {
		blocks := 0
		r := tableRig(t, p, horizon, func(tr trajectory.Trajectory) {
			blocks++
			valid, reward := make([]byte, horizon*4), make([]float32, horizon*4)
			copy(valid, []byte{1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0})
			for at, want := range map[int]float32{0: 11, 2: 11, 5: 220, 7: 220, 8: 100, 10: 100} {
				reward[at] = want
			}
			for i, v := range tr.Bytes(trajectory.Valid) {
				end := v != 0 && (i == 5 || i == 7 || i == 8 || i == 10)
				if v != valid[i] || v != 0 && tr.Float32(trajectory.Reward)[i] != reward[i] || v != 0 && (tr.Bytes(trajectory.Terminated)[i] != 0) != end || v != 0 && tr.Bytes(trajectory.Truncated)[i] != 0 {
					t.Errorf("horizon %d: row %d of agent %d: valid %d, reward %v, terminated %d, truncated %d", horizon, i/4, i%4, v,
						tr.Float32(trajectory.Reward)[i], tr.Bytes(trajectory.Terminated)[i], tr.Bytes(trajectory.Truncated)[i])
				}
				if i >= 12 && (tr.Float32(trajectory.Reward)[i] != 0 || tr.Bytes(trajectory.Terminated)[i] != 0) {
					t.Errorf("padding in row %d has an outcome", i/4)
				}
			}
		}, wholeEpisodes)
		r.MustRun(func() bool { return blocks >= 4 })
		if len(r.episodes) != 4*blocks || r.counter("rollout/env_steps") != uint64(6*blocks) {
			t.Errorf("%d episodes and %d env steps of %d blocks", len(r.episodes), r.counter("rollout/env_steps"), blocks)
		}
		for _, e := range r.episodes {
			if e.Agent == 0 && (e.Return != 111 || e.Length != 2) || e.Agent == 1 && (e.Return != 220 || e.Length != 1) {
				t.Errorf("told %+v", e)
			}
		}
	}
}

// A run continues from a snapshot with the same blocks, bit for bit, whether its block has begun or not.
func TestRestore_ContinuesWholeEpisodes(t *testing.T) {
	for _, begun := range []bool{false, true} {
		o := rigOptions{script: wholeScript(hostabi.SameStep), run: component.Run{Seed: 3}, config: func(c *config) {
			c.Envs, c.Splits, c.Horizon, c.Blocks = 6, 2, 12, 1
			wholeEpisodes(c)
		}}
		record := func(r *rig) *[]string {
			var list []string
			r.eachBlock(t, func(m *hostabi.Message, tr trajectory.Trajectory) {
				bits := fmt.Sprint(m.Split, *tr.Meta())
				for _, c := range []trajectory.Column{trajectory.Action, trajectory.Obs, trajectory.Reward, trajectory.Valid, trajectory.Truncated} {
					bits += string(tr.Bytes(c))
				}
				list = append(list, bits)
			})
			return &list
		}
		r := legalRig(t, o)
		r.keep = true
		r.until(t, 2)
		r.MustSettle()
		if begun {
			r.silent = true
			r.letGo(t)
			r.letGo(t)
			r.MustSettle()
		}
		from := snapshot(t, r)
		want := record(r)
		r.silent, r.keep = false, false
		for _, m := range r.asked[len(r.asked)-2:] {
			if begun {
				r.answer(m)
			}
		}
		if !begun {
			r.letGo(t)
			r.letGo(t)
		}
		r.MustRun(func() bool { return len(*want) >= 6 })
		again := legalRig(t, o)
		got := record(again)
		if err := again.c.Restore(from); err != nil {
			t.Fatal(err)
		}
		again.MustRun(func() bool { return len(*got) >= 6 })
		slices.Sort(*want)
		slices.Sort(*got)
		for i := range 6 {
			if (*got)[i] != (*want)[i] {
				t.Errorf("begun %t: block %d differs", begun, i)
			}
		}
	}
}

// A step allocates nothing, and neither does the end of a block, from the actions that arrive to the next request.
func TestWholeEpisodes_AllocateNothing(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		script := heights(mode)
		script.Legal = nil
		c := New().(*Rollout)
		r := plugintest.NewRig(t, c, plugintest.RigOptions{Name: "rollout", Envs: map[string]env.Plugin{"scripted": limited(t, plugintest.New(script), 7)}},
			func(into any) error {
				small(into.(*config))
				into.(*config).Horizon, into.(*config).Blocks = 20, 64
				wholeEpisodes(into.(*config))
				return nil
			})
		r.MustSettle()
		s, blocks := c.splits[0], c.splits[0].sequence
		n := testing.AllocsPerRun(200, func() {
			clear(s.rows.tr.Bytes(trajectory.Action)) // a block may have been poisoned
			m := trajectory.ActRequest{Block: s.loan.Handle(), T: s.t}.Message()
			c.onActions(&m)
		})
		if n != 0 || s.sequence < blocks+20 || s.sequence > blocks+60 {
			t.Errorf("%v: %v allocations a step in %d blocks, want 0", mode, n, s.sequence-blocks)
		}
	}
}
