package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// steadyShop is a swap shop with two versions of the walk that never fail, and pay twice as much as walk.wasm.
func steadyShop(t *testing.T) *workshop {
	t.Helper()
	w := newSwapShop(t)
	w.copy("steady.wasm", faultyGuests+"/steady.wasm")
	w.copy("steady2.wasm", faultyGuests+"/steady.wasm", 0, 2, 1, 'x') // with a section that means nothing
	return w
}

// steady are the arguments of a run of the version that never fails; a later version obeys them.
func steady(args string) []string {
	return []string{"walk.toml", "--set", "env.walk.use=./steady.wasm", "--set", "env.walk.args={" + args + "}"}
}

// liveTrial is a request for a swap that is tried on eight environments, in the run too, for 20 env steps each.
func (w *workshop) liveTrial(file string) control.SwapRequest {
	q := w.swapTo(file)
	q.TrialEnvs, q.TrialSteps, q.TrialLive = new(8), new(20), true
	return q
}

// rowsOf returns how many env steps each version has made, by the first digits of its hash, as of the last metrics.
func (j *subject) rowsOf(file string) float64 {
	j.t.Helper()
	text := j.file("metrics.jsonl")
	whole := text[:strings.LastIndex(text, "\n")]
	var last map[string]any
	if err := json.Unmarshal([]byte(whole[strings.LastIndex(whole, "\n")+1:]), &last); err != nil {
		j.t.Fatal(err)
	}
	n, _ := last["version/"+moduleHash(j.t, j.w.path(file))[:8]+"/env_steps"].(float64)
	return n
}

// runsOnly checks that one version makes env steps and the other does not.
func (j *subject) runsOnly(file, not string) {
	j.t.Helper()
	j.runsFile(file)
	j.goesOn() // the other's env steps are counted by then
	j.goesOn()
	others, own := j.rowsOf(not), j.rowsOf(file)
	j.until(file+" makes env steps", func(*control.StatusReply) bool { return j.rowsOf(file) > own })
	if now := j.rowsOf(not); now != others {
		j.t.Errorf("%s has made %g env steps more", not, now-others)
	}
}

// A new version that fails in its trial in the run is refused with its fault: the old one runs everywhere again,
// nothing is lost without being counted, and the next swap is made.
func TestSwapFault_ANewVersionGoesWrongInItsTrialInTheRun(t *testing.T) {
	for _, c := range []struct{ what, args, limits, reason string }{
		{"traps", "fault=1,env=6,step=21", "{}", `trap in rl_step at step \d+`},
		{"hangs", "fault=2,env=6,step=21", `{step="100ms"}`, `deadline in rl_step at step \d+`},
		{"returns NaN", "fault=4,env=6,step=21", "{}", `output in rl_step at step \d+: .*NaN`},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := steadyShop(t)
			j := w.gated(append(steady(c.args), "--set", "env.walk.limits="+c.limits)...)
			was := j.text()
			h := j.hold("pwrite 0001/events.jsonl") // the refusal, or the beginning of the commit
			answered := j.asks(t.Context(), control.VerbSwap, w.liveTrial("walk.wasm"), nil, nil)
			h.wait(t)
			j.says("environments go back to the previous version: rollout") // no env step is lost if no environment had gone over yet
			h.goOn()
			j.refusal(j.answer(answered), control.CodeTrial,
				"^the trial in the run speaks against it: rollout( env 6)?: "+c.reason+".*; the old version runs everywhere")
			s := j.quiet()
			if s.Swaps != (control.SwapCounts{Refused: 1}) || j.text() != was {
				t.Errorf("%+v, pipeline.toml says\n%s, it was\n%s", s.Swaps, j.text(), was)
			}
			j.wrote("refused", "swap", "the trial in the run speaks against it: .*"+c.reason)
			j.runsOnly("steady.wasm", "walk.wasm")
			t.Logf("%+v", j.addsUp("fault"))
			if r := j.swap(w.liveTrial("steady2.wasm")); r.Envs != 16 {
				t.Errorf("the next swap: %+v", r)
			}
			j.runsOnly("steady2.wasm", "steady.wasm")
			j.addsUp("fault")
			j.stop()
		})
	}
}

// A version that passes its trial in the run, and fails on probation, is replaced by the version before the trial.
func TestSwapFault_ANewVersionFailsAfterItsTrialInTheRun(t *testing.T) {
	t.Parallel()
	w := steadyShop(t)
	j := w.host(steady("fault=1,env=15,step=60011")...) // long after the trial
	was := j.text()
	q := w.liveTrial("walk.wasm")
	q.Probation = new(60.0)
	if r := j.swap(q); r.Envs != 16 {
		t.Errorf("%+v", r)
	}
	s := j.quiet()
	note := instance(&s, "rollout").Note
	if s.Swaps.Committed != 1 || s.Swaps.RolledBack != 1 || !strings.Contains(note, "rolled back: rollout env 15: trap in rl_step at step 60011") {
		t.Errorf("%+v, status says %q", s.Swaps, note)
	}
	if text := j.text(); text != was {
		t.Errorf("pipeline.toml says\n%s, it was\n%s", text, was)
	}
	j.wrote("rolled_back", "fallback", "^rollout env 15: trap in rl_step at step 60011")
	j.runsOnly("steady.wasm", "walk.wasm")
	j.addsUp("fault")
	j.stop()
}

// A version with clearly lower rewards is swapped in all the same, with a note: it may be intended. It can be rolled back.
func TestSwap_ANewVersionWithLowerReturnsIsAcceptedWithANote(t *testing.T) {
	t.Parallel()
	w := steadyShop(t)
	j := w.host(steady("fault=0")...)
	var back control.SwapReply
	q := w.liveTrial("walk.wasm")
	q.TrialSteps = new(1000)
	r := j.swap(q)
	if r.Trial == nil || r.Trial.New.MeanReturn >= r.Trial.Old.MeanReturn ||
		!strings.Contains(strings.Join(r.Notes, "\n"), "the returns differ") {
		t.Errorf("%s", asJSON(r))
	}
	j.runsOnly("walk.wasm", "steady.wasm")
	j.addsUp()
	j.do(control.VerbRollback, control.RollbackRequest{Component: "rollout"}, &back)
	if back.Outcome != control.RolledBack {
		t.Errorf("%s", asJSON(back))
	}
	j.runsOnly("steady.wasm", "walk.wasm")
	j.addsUp()
	j.stop()
}

// A trial in the run that would leave no old environment, or has no new ones, is refused before anything is tried.
func TestSwapFault_TrialsInTheRunThatMakeNoSense(t *testing.T) {
	t.Parallel()
	w := steadyShop(t)
	j := w.host(steady("fault=0")...)
	for file, envs := range map[string]int{"walk.wasm": 16, "steady2.wasm": 17} {
		q := w.liveTrial(file)
		q.TrialEnvs = &envs
		j.fails(control.VerbSwap, q, control.CodeBad, "a live trial of 1[67] environments: rollout has 16, of which some stay")
	}
	for _, component := range []string{"rollout", "learner"} {
		j.fails(control.VerbSwap, control.SwapRequest{Component: component, File: "process", TrialLive: true, TrialEnvs: new(2)}, control.CodeBad,
			component+" has the environments that it had")
	}
	j.runsFile("steady.wasm")
	j.goesOn()
	j.addsUp()
	j.stop()
}
