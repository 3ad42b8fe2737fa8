package envcheck

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// sound is a script that every check passes.
func sound() plugintest.Script {
	return plugintest.Script{
		EpisodeLimit: 11,
		Length:       func(env, episode int) int { return 1 + (3*env+5*episode)%11 },
		Ends:         func(env, episode int) plugintest.End { return plugintest.End(1 + (env+episode)%3) },
	}
}

func checked(t *testing.T, s plugintest.Script, o Options) map[string]Result {
	t.Helper()
	p := plugintest.New(s)
	if o.Steps == 0 {
		o.Steps = 200
	}
	results := map[string]Result{}
	for _, r := range Run(t.Context(), p, o) {
		results[r.ID] = r
		if (r.Help != "") != (r.Verdict != OK) || r.Title == "" || r.Detail == "" {
			t.Errorf("%+v: want a title and a detail, and help unless it is ok", r)
		}
	}
	if p.Open() != 0 {
		t.Errorf("%d batches are not closed", p.Open())
	}
	return results
}

func TestRun_PassesASoundEnvironment(t *testing.T) {
	masked := sound()
	masked.Actions = 4
	masked.Legal = func(at plugintest.At, action int) bool { return (at.Step+action)%3 != 0 }
	alone := sound()
	alone.MaxEnvs = 1
	disabled := sound()
	disabled.Autoreset = hostabi.Disabled
	for name, s := range map[string]plugintest.Script{"plain": sound(), "masked": masked, "alone": alone, "disabled": disabled} {
		results := checked(t, s, Options{})
		if len(results) != len(checks()) {
			t.Errorf("%s: %d results of %d checks", name, len(results), len(checks()))
		}
		for _, r := range results {
			if r.Verdict != OK {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
	if r := checked(t, sound(), Options{})["E02"]; !strings.HasPrefix(r.Detail, "same_step, next_step, disabled agree") {
		t.Errorf("E02 says %q, want all three modes", r.Detail)
	}
}

func TestRun_EachCheckFindsItsFault(t *testing.T) {
	flawed := func(f plugintest.Flaws) plugintest.Script {
		s := sound()
		s.Flaws = f
		return s
	}
	cued := func(c plugintest.Cue) plugintest.Script {
		s := sound()
		s.Legal = func(plugintest.At, int) bool { return true }
		s.Cue = func(at plugintest.At) plugintest.Cue {
			if at.Env == 2 && at.Calls == 40 {
				return c
			}
			return plugintest.Nothing
		}
		return s
	}
	endless := sound()
	endless.Length = func(int, int) int { return 1 << 40 }
	unlimited := sound()
	unlimited.EpisodeLimit = 0
	calls := 0
	moody := sound()
	moody.Reward = func(at plugintest.At) float32 { calls++; return float32(calls) }
	told, discounted := sound(), sound()
	told.Infos = []hostabi.Tensor{{Flags: hostabi.TensorEpisode}}
	told.Tell = func(_ plugintest.At, figures []float32) { calls++; figures[0] = float32(calls) }
	discounted.Discount = func(plugintest.At) float32 { calls++; return 1 / float32(calls) }
	shortLimit := sound()
	shortLimit.EpisodeLimit = 5
	masked := flawed(plugintest.Flaws{MaskAfterEnd: true})
	masked.Legal = func(at plugintest.At, action int) bool { return (at.Step+action)%2 == 0 }
	next := flawed(plugintest.Flaws{PhantomReward: 3})
	next.Autoreset = hostabi.NextStep
	maskedDisabled := masked
	maskedDisabled.Autoreset = hostabi.Disabled
	rewarded := flawed(plugintest.Flaws{PhantomReward: 3})
	rewarded.Autoreset = hostabi.Disabled
	forgetful := func(mode hostabi.Autoreset) plugintest.Script {
		s := flawed(plugintest.Flaws{ForgetsEnd: true})
		s.Autoreset = mode
		s.Length = func(env, episode int) int { return 1 + (3*env+5*episode)%9 } // no episode ends where D06 saves in the middle
		return s
	}
	for _, c := range []struct {
		name    string
		script  plugintest.Script
		id      string
		verdict Verdict
		detail  string
	}{
		{"NaN", cued(plugintest.NaNObservation), "A01", Failed, "step 40: env 2 after rl_step: environment wrote a value that is not allowed: observation element 3 is NaN"},
		{"NaN reward", cued(plugintest.NaNReward), "A01", Failed, "reward is NaN"},
		{"a flag of 2", cued(plugintest.TerminatedOfTwo), "A01", Failed, "terminated is 2, want 0 or 1"},
		{"a mask of nothing", cued(plugintest.NoLegalAction), "A01", Failed, "no legal action"},
		{"a trap", cued(plugintest.Trap), "A01", Failed, "check env 2: trap in rl_step at step 40: trap on cue"},
		{"out of bounds", flawed(plugintest.Flaws{OutOfBounds: true}), "S02", Failed, "bounds -1..1"},
		{"no end", endless, "T01", Warning, "no episode ended within 200 env steps"},
		{"no limit", unlimited, "T02", Warning, "no episode_limit"},
		{"a counter outside", moody, "D01", Failed, "env 0 differs from step 1 on"},
		{"an info from outside", told, "D01", Failed, "differs from step"},
		{"a discount from outside", discounted, "D01", Failed, "env 0 differs from step 1 on"},
		{"no chance", flawed(plugintest.Flaws{IgnoresSeeds: true}), "D02", Warning, "two seeds give one trace"},
		{"seeds ignored", flawed(plugintest.Flaws{IgnoresSeeds: true}), "D04", Failed, "after 57 other steps"},
		{"shared numbers", flawed(plugintest.Flaws{SharedChance: true}), "D03", Failed, "env 0 alone differs from env 0 of 4"},
		{"one seed for all", flawed(plugintest.Flaws{FirstSeed: true}), "D03", Failed, "env 3 alone, with its own seed, differs from env 3 of 4"},
		{"leftovers", flawed(plugintest.Flaws{Leftover: true}), "D04", Failed, "after 57 other steps"},
		{"state outside", flawed(plugintest.Flaws{LossySnapshot: true}), "D05", Failed, "restored at step 100, env 0 differs from step 101 on"},
		{"no snapshots", flawed(plugintest.Flaws{NoSnapshot: true}), "D05", Warning, "no snapshot, so runs on it cannot be resumed exactly"},
		{"the first block alone", flawed(plugintest.Flaws{FirstBlock: true}), "D10", Failed, "env 0"},
		{"a phantom reward", next, "E02", Failed, "the step after an end has reward 3 and flags 0"},
		{"a phantom reward in the other mode", flawed(plugintest.Flaws{PhantomReward: 3}), "E02", Failed, "the step after an end has reward 3"},
		{"no last observation", flawed(plugintest.Flaws{NoFinalObs: true}), "E02", Failed, "under next_step differs from that under same_step"},
		{"no last observation", flawed(plugintest.Flaws{NoFinalObs: true}), "M01", Failed, "env 0: rl_step at step 7 does not write element 0 of final_obs f32[5]"},
		{"a mask of the state that has ended", masked, "E03", Failed, "ends an episode under next_step, and element 0 of the mask after it is 0"},
		{"a mask of the state that has ended, under disabled", maskedDisabled, "E03", Failed, "ends an episode under disabled, and element 0 of the mask after it is 0"},
		{"no waiting", flawed(plugintest.Flaws{NoWaiting: true}), "E04", Failed, "stepped while it waits for its reset: check env 0: status in rl_step at step 2: no episode has begun"},
		{"moves while it waits", flawed(plugintest.Flaws{WaitingMoves: true}), "E04", Failed, "env 0 step 2: while it waits for its reset it shows another observation"},
		{"draws while it waits", flawed(plugintest.Flaws{WaitingDraws: true}), "E04", Failed, "differs where it was stepped while it waited for its reset"},
		{"a reward while it waits", rewarded, "E04", Failed, "the step after an end has reward 3 and flags 0, want 0 under disabled"},
		{"a saved state without the end, under next_step", forgetful(hostabi.NextStep), "D06", Failed, "saved after the end at step 1 under next_step"},
		{"a saved state without the end, under disabled", forgetful(hostabi.Disabled), "D06", Failed, "saved after the end at step 1 under disabled"},
		{"a limit that is not kept", shortLimit, "T02", Failed, "the description has episode_limit 5, and an episode goes on for 11 env steps"},
	} {
		results := checked(t, c.script, Options{})
		if r := results[c.id]; r.Verdict != c.verdict || !strings.Contains(r.Detail, c.detail) {
			t.Errorf("%s: %s is %q, %q; want %q with %q", c.name, c.id, r.Verdict, r.Detail, c.verdict, c.detail)
		}
		if failed := results["A01"].Verdict == Failed; failed != (len(results) == 2) {
			t.Errorf("%s: %d results; what cannot be stepped is not checked further", c.name, len(results))
		}
	}
}

func TestRun_StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	results := Run(ctx, plugintest.New(sound()), Options{})
	if len(results) != 2 || results[1].Verdict != Failed || !strings.Contains(results[1].Detail, "canceled") {
		t.Errorf("got %+v", results)
	}
}

// What there was no time for is neither a failed check nor one that is passed.
func TestBrief_SaysThatItWasCut(t *testing.T) {
	if failed, cut := Brief(t.Context(), plugintest.New(sound()), Options{Seed: 1}, time.Minute); failed != nil || cut {
		t.Errorf("with time enough: %v, %t", failed, cut)
	}
	if failed, cut := Brief(t.Context(), plugintest.New(sound()), Options{Seed: 1}, 0); failed != nil || !cut {
		t.Errorf("without time: %v, %t", failed, cut)
	}
}

func TestRun_KeepsOfALongTraceNoMoreThanOfAShortOne(t *testing.T) {
	const steps = 5 * maxMarks / 2
	c := &checker{ctx: t.Context(), plugin: plugintest.New(sound()), o: Options{Envs: 2, Steps: steps, Seed: 1}}
	c.spec = c.plugin.Spec()
	got, err := c.record(run{envs: 2, seed: 1, real: true})
	if err != nil {
		t.Fatal(err)
	}
	if got.every != 3 || len(got.hashes) != steps/3*2 || cap(got.real[0]) > 2*maxMarks {
		t.Errorf("every %d, %d marks, room for %d of real steps; want every 3rd step of %d", got.every, len(got.hashes), cap(got.real[0]), steps)
	}
	other := *got
	other.hashes = slices.Clone(got.hashes)
	other.hashes[2*1000+1]++
	if env, place, differ := got.differ(&other, 2); !differ || env != 1 || place != "a step between 3001 and 3003" {
		t.Errorf("differ = %d, %q, %t", env, place, differ)
	}
}

// The text has a description's facts in addition to its spaces, and nothing where there are none.
func TestHead_HasTheFacts(t *testing.T) {
	spec := plugintest.New(sound()).Spec()
	if text := Head(spec); strings.Contains(text, "it says") || len(Facts(spec)) != 0 {
		t.Errorf("of a plain description it says %q", text)
	}
	threshold := float32(-3)
	spec.Flags, spec.Licence, spec.Rewards.Threshold = hostabi.SpecDynamicAgents, "see\nthe file", &threshold
	const want = "\n  it says: which agents act changes; a mean return of -3 is solved; licence see the file\n"
	if text := Head(spec); !strings.Contains(text, want) {
		t.Errorf("it says %q, want %q", text, want)
	}
}

// A check is reported once it has been made, before the next one begins.
func TestRun_ReportsEachCheckAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var told []Result
	o := Options{Steps: 50, Done: func(r Result) {
		if told = append(told, r); r.ID == "M01" {
			cancel()
		}
	}}
	results := Run(ctx, plugintest.New(sound()), o)
	if !slices.Equal(told, results) {
		t.Errorf("told are %v of %v", told, results)
	}
	for _, r := range results {
		if r.ID == "D01" && r.Verdict != Failed {
			t.Errorf("%+v though it was given up behind M01", r)
		}
	}
}

func TestRun_TellsAuthorsInPythonTheirOwnWords(t *testing.T) {
	help := func(python bool) map[string]string {
		told := map[string]string{}
		for _, r := range Run(t.Context(), plugintest.New(plugintest.Script{Flaws: plugintest.Flaws{IgnoresSeeds: true}}), Options{Steps: 100, Python: python}) {
			told[r.ID] = r.Help
		}
		return told
	}
	if got := help(true)["D02"]; got != inPython["D02"] {
		t.Errorf("in Python: %q", got)
	}
	if got := help(false)["D02"]; got != "use the seeds that rl_reset is given" {
		t.Errorf("of a module: %q", got)
	}
	ids := map[string]bool{}
	for _, k := range checks() {
		ids[k.id] = true
	}
	for id, text := range inPython {
		if !ids[id] || strings.Contains(text, "rl_") || strings.Contains(text, "RL_") {
			t.Errorf("%s: %q", id, text)
		}
	}
}

func TestSum_GivesAHintWhereManyTracesDiffer(t *testing.T) {
	failed := func(ids ...string) (list []Result) {
		for _, id := range ids {
			list = append(list, Result{ID: id, Verdict: Failed})
		}
		return list
	}
	if got, want := Sum(failed("D01", "D03", "M01")), "0 passed, 0 warnings, 3 failed\n"; got != want {
		t.Errorf("two D checks: %q, want %q", got, want)
	}
	if got, want := Sum(failed("D01", "D03", "D07")), "3 of the D checks fail: often one read outside of a row causes all of them, such as action[1] of a single action; "+
		"a native build with -fsanitize=address,undefined names its line\n0 passed, 0 warnings, 3 failed\n"; got != want {
		t.Errorf("three D checks: %q, want %q", got, want)
	}
}

func TestWithoutSnapshot_OfPythonThereIsNothingToCorrect(t *testing.T) {
	detail, help := withoutSnapshot("not supported by this environment: environments of Python have no snapshot: Gymnasium and PettingZoo do not say what their state is")
	if detail != "environments of Python cannot be saved, so runs on them cannot be resumed exactly" || !strings.HasPrefix(help, "there is nothing to correct") {
		t.Errorf("%q, %q", detail, help)
	}
	if detail, help := withoutSnapshot("it has threads"); detail != "no snapshot, so runs on it cannot be resumed exactly: it has threads" || help != "" {
		t.Errorf("of a module: %q, %q", detail, help)
	}
}
