package rollout

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// at makes a script go wrong from one call of Step on, each time the environments are made.
func at(env int, call uint64, cue plugintest.Cue) func(*plugintest.Script) {
	return func(s *plugintest.Script) {
		s.Cue = func(at plugintest.At) plugintest.Cue {
			if !at.Reset && at.Env == env && at.Calls >= call {
				return cue
			}
			return plugintest.Nothing
		}
	}
}

// On probation the first fault of the new environments takes the component back, at whatever moment it comes, and
// costs no restart.
func TestProbation_AFaultGoesBack(t *testing.T) {
	cues := map[plugintest.Cue]string{plugintest.Trap: "trap", plugintest.Deadline: "deadline", plugintest.ErrorStatus: "status",
		plugintest.NaNReward: "output", plugintest.NaNObservation: "output", plugintest.TerminatedOfTwo: "output"}
	for _, boundary := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory, component.AtEpisode} {
		for cue, kind := range cues {
			for splits := 1; splits <= 2; splits++ {
				for _, call := range []uint64{1, 2, 13} {
					for _, keep := range []bool{false, true} {
						if (int(cue)+splits+int(call))%2 == 0 == keep || testing.Short() && cue > plugintest.Deadline {
							continue // each pair of choices comes up with some third one
						}
						name := fmt.Sprintf("%v/%v/splits %d/call %d/keep %v", boundary, cue, splits, call, keep)
						t.Run(name, func(t *testing.T) {
							w := newWorld(t, worldOptions{splits: splits, async: keep, flaws: map[int]func(*plugintest.Script){2: at(4, call, cue)}})
							testFall(t, w, component.EnvChange{At: boundary, KeepState: keep, Probation: true}, kind)
						})
					}
				}
			}
		}
	}
}

func testFall(t *testing.T, w *world, o component.EnvChange, kind string) {
	w.more(2)
	w.inRow(0, 2)
	p := w.prepare(2, o)
	w.commit(p)
	w.run(func() bool { return len(w.rolledBack) > 0 })
	if !strings.Contains(w.rolledBack[0].Error(), kind) {
		t.Errorf("rolled back because of %v, want %s", w.rolledBack[0], kind)
	}
	w.more(4)
	if len(w.rolledBack) != 1 || len(w.went) > 1 || w.c.restarted.All() != 0 || w.counter("rollout/restarts") != 0 {
		t.Errorf("rolled back %d times, went %d, %d restarts", len(w.rolledBack), len(w.went), w.c.restarted.All())
	}
	w.wantOpen(map[int]int{1: w.c.config.Splits})
	if got := w.counter("version/" + w.plugins[2].Hash()[:8] + "/faults"); got != 1 {
		t.Errorf("%d faults of the version", got)
	}
	for env, v := range w.newest {
		if v != 1 {
			t.Errorf("environment %d is of version %d", env, v)
		}
	}
	p.Settle() // of a change that is over
	p.Cancel()
	w.change(3, component.EnvChange{At: component.AtTrajectory})
	w.more(2)
	w.balance()
}

// What lost processes cost without a probation is a row; on it they are a fault like others.
func TestProbation_LostEnvironmentsGoBackToo(t *testing.T) {
	for _, boundary := range []component.Boundary{component.AtStep, component.AtTrajectory, component.AtEpisode} {
		for call, number := range map[string]int{hostabi.ExportStep: 3, hostabi.ExportReset: 2, hostabi.ExportBind: 5} {
			t.Run(fmt.Sprintf("%v/%s", boundary, call), func(t *testing.T) {
				w := newWorld(t, worldOptions{splits: 2})
				died := false
				dies := func(c string, n, first int) []env.Span {
					if c != call || n < number || first != 3 || died {
						return nil
					}
					died = true
					return []env.Span{{First: 1, Count: 1}}
				}
				if boundary == component.AtEpisode && call == hostabi.ExportBind {
					number = 2
				}
				testFall(t, w, component.EnvChange{Plugin: mortal{w.plugins[2], dies}, At: boundary, Probation: true}, "lost")
			})
		}
	}
}

// An environment that fails in its 40,112th step fails on probation, or costs a restart once that is over.
func TestProbation_EndsWithSettle(t *testing.T) {
	const call = 40112
	for _, settle := range []bool{false, true} {
		w := newWorld(t, worldOptions{steps: 128, flaws: map[int]func(*plugintest.Script){2: at(4, call, plugintest.Trap)}})
		p := w.change(2, component.EnvChange{At: component.AtStep, Probation: true})
		w.wantOpen(map[int]int{1: 1, 2: 1})
		if settle {
			p.Settle()
			w.wantOpen(map[int]int{2: 1})
		}
		w.run(func() bool { return len(w.rolledBack) > 0 || w.c.restarted.All() > 0 })
		if back := len(w.rolledBack) == 1; back == settle || back && w.c.restarted.All() != 0 {
			t.Errorf("settled %v: rolled back %v, %d restarts", settle, w.rolledBack, w.c.restarted.All())
		}
		if !settle && !strings.Contains(w.rolledBack[0].Error(), "at step 40112") {
			t.Errorf("rolled back because of %v", w.rolledBack[0])
		}
	}
}

// A fault costs a restart if the owner of a change does not take it back any more. So do later faults, and nobody asks the owner.
func TestProbation_TheOwnerMayBearAFault(t *testing.T) {
	for splits := 1; splits <= 2; splits++ {
		for _, version := range []string{"guest", "lost"} {
			w := newWorld(t, worldOptions{splits: splits, flaws: map[int]func(*plugintest.Script){2: at(4, 13, plugintest.Trap)}})
			var plugin env.Plugin
			if version == "lost" {
				plugin = mortal{w.plugins[3], func(call string, n, first int) []env.Span {
					if call == hostabi.ExportStep && n%9 == 8 {
						return []env.Span{{First: 1, Count: 1}}
					}
					return nil
				}}
			}
			asked := 0
			o := component.EnvChange{Plugin: plugin, At: component.AtStep, Probation: true, OnFault: func(error) bool { asked++; return false }}
			w.loose = true
			p := w.change(2, o)
			w.run(func() bool { return w.c.restarted.All() > 1 })
			if asked != 1 || len(w.rolledBack) != 0 {
				t.Errorf("%s, %d splits: asked %d times, rolled back %v; want 1 and none", version, splits, asked, w.rolledBack)
			}
			p.Settle()
			if version == "guest" {
				w.wantOpen(map[int]int{2: splits})
			}
			w.balance()
		}
	}
}

// Without a probation faults cost the same as always, also while the environments go over.
func TestChange_AFaultOfTheNewOnesCostsARestart(t *testing.T) {
	for _, boundary := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory, component.AtEpisode} {
		for _, cue := range []plugintest.Cue{plugintest.Trap, plugintest.ErrorStatus, plugintest.NaNReward} {
			t.Run(fmt.Sprintf("%v/%v", boundary, cue), func(t *testing.T) {
				var w *world
				w = newWorld(t, worldOptions{splits: 2, flaws: map[int]func(*plugintest.Script){2: func(s *plugintest.Script) {
					s.Cue = func(at plugintest.At) plugintest.Cue {
						if !at.Reset && at.Env == 4 && at.Calls >= 2 && w.c.restarted.All() == 0 { // until somebody notices
							return cue
						}
						return plugintest.Nothing
					}
				}}})
				w.more(2)
				w.inRow(0, 1)
				w.loose = true
				w.change(2, component.EnvChange{At: boundary})
				w.more(8)
				if w.c.restarted.All() != 1 || len(w.rolledBack) != 0 {
					t.Errorf("%d restarts, rolled back %v; want 1 and none\n%s", w.c.restarted.All(), w.rolledBack, w.Log.String())
				}
				w.wantOpen(map[int]int{2: 2})
				w.balance()
			})
		}
	}
}

// A fault of the old environments costs no restart: the new ones take over.
func TestChange_AFaultOfTheOldOnesIsABoundary(t *testing.T) {
	for _, boundary := range []component.Boundary{component.AtTrajectory, component.AtEpisode} {
		w := newWorld(t, worldOptions{steps: 8, flaws: map[int]func(*plugintest.Script){1: at(1, 3, plugintest.Trap)},
			config: func(c *config) { c.MaxRestarts = 0 }})
		w.inRow(0, 1)
		w.loose = true
		w.change(2, component.EnvChange{At: boundary})
		w.more(3)
		if w.c.restarted.All() != 0 || w.went[0].Envs != 6 || w.went[0].Truncated != 0 {
			t.Errorf("%v: %d restarts, went %+v", boundary, w.c.restarted.All(), w.went)
		}
		w.balance()
	}
}

func TestTrial_SomeEnvironmentsGoOver(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		for splits := 1; splits <= 3; splits++ {
			for _, end := range []string{"cancel", "all", "back", "fault", "stop"} {
				t.Run(fmt.Sprintf("%v/splits %d/%s", mode, splits, end), func(t *testing.T) {
					testTrial(t, worldOptions{mode: mode, splits: splits, masked: splits == 2, async: splits == 3, limit: splits % 2 * 4,
						flaws: map[int]func(*plugintest.Script){3: at(1, 40, plugintest.NaNObservation)}}, end)
				})
			}
		}
	}
}

func testTrial(t *testing.T, o worldOptions, end string) {
	w := newWorld(t, o)
	w.more(1)
	version := 2
	if end == "fault" {
		version = 3
	}
	p := w.change(version, component.EnvChange{Envs: 4, Probation: end == "fault"})
	if w.went[0].Envs != 4 || w.went[0].Truncated != 0 {
		t.Errorf("went %+v, want 4 environments at the ends of their episodes", w.went)
	}
	w.more(4 * o.splits)
	for env, v := range w.newest {
		if want := 1; env < 4 && v != version || env >= 4 && v != want {
			t.Errorf("environment %d is of version %d", env, v)
		}
	}
	want := 1
	switch end {
	case "cancel":
		p.Cancel()
	case "all":
		w.change(2, component.EnvChange{At: component.AtEpisode})
		want = 2
	case "back":
		w.change(1, component.EnvChange{At: component.AtTrajectory, KeepState: true})
	case "fault":
		w.run(func() bool { return len(w.rolledBack) > 0 })
	case "stop":
		return
	}
	w.more(4 * o.splits)
	for env, v := range w.newest {
		if v != want {
			t.Errorf("in the end environment %d is of version %d, want %d", env, v, want)
		}
	}
	w.wantOpen(map[int]int{want: o.splits})
	w.change(4, component.EnvChange{At: component.AtStep})
	w.more(o.splits)
	w.balance()
}

func TestCancel_TakesBackThoseThatHaveGoneOver(t *testing.T) {
	for _, boundary := range []component.Boundary{component.AtTrajectory, component.AtEpisode} {
		for row := range 4 {
			w := newWorld(t, worldOptions{splits: 2})
			w.more(2)
			p := w.prepare(2, component.EnvChange{At: boundary, Task: 1, TaskBack: 2})
			w.inRow(0, row)
			w.commit(p)
			w.run(func() bool { return w.made[2] > 0 || w.c.splits[0].batch.version == w.c.known.of(w.plugins[2].Hash()) })
			if row == 3 {
				w.run(func() bool { return len(w.went) > 0 }) // also then it can be taken back, until
			}
			want, task := 1, uint16(2)
			if row == 0 {
				w.run(func() bool { return len(w.went) > 0 })
				p.Settle()
				want, task = 2, 1
			}
			p.Cancel()
			w.more(10)
			if e := w.episodes[len(w.episodes)-1]; e.Task != task {
				t.Errorf("%v, row %d: in the end episodes are of task %d, want %d", boundary, row, e.Task, task)
			}
			w.wantOpen(map[int]int{want: 2})
			if len(w.rolledBack) > 0 {
				t.Errorf("rolled back %v", w.rolledBack)
			}
			w.change(3, component.EnvChange{})
			w.balance()
		}
	}
}

// refusing is a plugin whose environments do not all load what others saved.
type refusing struct {
	env.Plugin
	from int
	err  error
}

type refusingEnv struct {
	env.Env
	p *refusing
}

func (p refusing) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return refusingEnv{e, &p}, err
}

func (e refusingEnv) SaveEnv(index int, dst []byte) ([]byte, error) {
	return e.Env.(env.Stater).SaveEnv(index, dst)
}

func (e refusingEnv) LoadEnv(index int, state []byte) error {
	if index >= e.p.from {
		return e.p.err
	}
	return e.Env.(env.Stater).LoadEnv(index, state)
}

func TestKeepState_WhatIsRefusedInTheMiddleEndsAllEpisodes(t *testing.T) {
	for _, err := range []error{env.ErrUnsupported, &env.Fault{Kind: env.FaultTrap, Err: errors.New("on load")}} {
		for _, boundary := range []component.Boundary{component.AtNow, component.AtStep, component.AtTrajectory} {
			w := newWorld(t, worldOptions{})
			w.inRow(0, 3)
			w.change(2, component.EnvChange{Plugin: refusing{w.plugins[2], 4, err}, At: boundary, KeepState: true})
			if w.went[0].Kept != 0 || w.went[0].Truncated != 6 {
				t.Errorf("%v: went %+v, want all 6 episodes ended", boundary, w.went[0])
			}
			if !strings.Contains(w.Log.String(), "episodes are not carried over") {
				t.Errorf("log %s", w.Log.String())
			}
			w.more(2)
			if w.c.restarted.All() != 0 {
				t.Errorf("%d restarts", w.c.restarted.All())
			}
			w.balance()
		}
	}
}

// still is a plugin whose environments cannot be bound to another file.
type still struct{ env.Plugin }

type stillEnv struct {
	env.Env
	fd    int
	bound bool
}

func (p still) NewEnv(o env.Options) (env.Env, error) {
	e, err := p.Plugin.NewEnv(o)
	return &stillEnv{Env: e}, err
}

func (e *stillEnv) Bind(b env.Block) error {
	if e.bound && b.FD != e.fd {
		return fmt.Errorf("%w: another file", env.ErrUnsupported)
	}
	e.fd, e.bound = b.FD, true
	return e.Env.Bind(b)
}

// Environments that cannot step next to others keep running, and the change is given up with their error.
func TestChange_EnvironmentsThatCannotStepNextToOthersStay(t *testing.T) {
	for row := range 4 {
		w := newWorld(t, worldOptions{splits: 2, async: row%2 == 0, wrap: func(p env.Plugin) env.Plugin { return still{p} }})
		w.more(row)
		w.inRow(0, row)
		w.commit(w.prepare(2, component.EnvChange{At: component.AtEpisode}))
		w.run(func() bool { return len(w.rolledBack) > 0 })
		if !errors.Is(w.rolledBack[0], env.ErrUnsupported) || len(w.went) > 0 {
			t.Errorf("rolled back because of %v, went %v", w.rolledBack, w.went)
		}
		w.more(4)
		w.wantOpen(map[int]int{1: 2})
		w.change(3, component.EnvChange{At: component.AtStep})
		w.more(4)
		w.balance()
	}
}

// A fault of the old environments costs the same as always while the ones on trial wait for them to finish a step.
func TestTrial_AFaultBeforeItBegins(t *testing.T) {
	failed := false
	w := newWorld(t, worldOptions{splits: 2, async: true, flaws: map[int]func(*plugintest.Script){1: func(s *plugintest.Script) {
		s.Cue = func(at plugintest.At) plugintest.Cue {
			if at.Env == 1 && at.Calls == 9 && !failed {
				failed = true
				return plugintest.Trap
			}
			return plugintest.Nothing
		}
	}}, wrap: func(p env.Plugin) env.Plugin { return elsewhere{p} }})
	s := w.c.splits[0]
	w.run(func() bool { return s.stepping && s.batch.calls == 9 || failed })
	w.loose = true
	w.change(2, component.EnvChange{Plugin: elsewhere{w.plugins[2]}, Envs: 1})
	w.run(func() bool { return w.newest[0] == 2 }) // the other split may be much faster
	w.more(8)
	for env, v := range w.newest {
		if want := 1; env == 0 && v != 2 || env > 0 && v != want {
			t.Errorf("environment %d is of version %d", env, v)
		}
	}
	if w.c.restarted.All() != 1 {
		t.Errorf("%d restarts, want 1", w.c.restarted.All())
	}
	w.balance()
}
