package session_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/ppo"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// modes are the ways of an environment to end episodes.
var modes = []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled}

// A truncated row takes the value of the observation before the reset, whatever truncated the episode and however the environment resets.
func TestS2TruncationBootstrapsFromTheLastObservation(t *testing.T) {
	const limit = 5
	for _, mode := range modes {
		for name, limited := range map[string]bool{"by the guest": false, "by the host": true} {
			t.Run(fmt.Sprintf("%v %s", mode, name), func(t *testing.T) {
				script := uneven()
				script.Autoreset = mode
				script.Ends = func(int, int) plugintest.End { return plugintest.Truncates }
				var sets []string
				if limited {
					sets = []string{limitOf(limit)}
				}
				var seen valued
				o := experiment{script: script, sets: sets, backend: seen.wrap}.must(t)
				truncated := 0
				for _, rows := range o.rows(t) {
					truncated += checkTruncations(t, rows, &seen, func(env, episode int) int {
						if n := script.Length(env, episode); !limited || n < limit {
							return n
						}
						return limit
					})
				}
				if truncated < 50 {
					t.Errorf("%d truncated rows: the test looks at too little", truncated)
				}
			})
		}
	}
}

// checkTruncations looks at the rows of one environment and returns how many were truncated.
func checkTruncations(t *testing.T, rows []labRow, seen *valued, length func(env, episode int) int) (truncated int) {
	t.Helper()
	for i := range rows {
		r := &rows[i]
		if r.valid == 0 {
			continue
		}
		if want := r.at()+1 == length(r.env, r.episode()); (r.truncated != 0) != want || r.terminated != 0 {
			t.Errorf("%+v: want truncated %v", *r, want)
			return truncated
		}
		if r.truncated == 0 {
			continue
		}
		truncated++
		last, found := r.obs, false
		for obs, values := range seen.values {
			last = obs
			last[plugintest.ObsChance] = r.obs[plugintest.ObsChance]
			if obs[plugintest.ObsEnv] != r.obs[plugintest.ObsEnv] || obs[plugintest.ObsEpisode] != r.obs[plugintest.ObsEpisode] ||
				int(obs[plugintest.ObsStep]) != r.at()+1 {
				continue
			}
			for _, v := range values {
				found = found || v == r.bootstrap
			}
		}
		if !found {
			t.Errorf("%+v: the bootstrap value is none of the last observation %v", *r, last)
		}
	}
	return truncated
}

func TestS2TerminatedWinsOverTruncated(t *testing.T) {
	script := uneven()
	script.Ends = func(int, int) plugintest.End { return plugintest.Terminates | plugintest.Truncates }
	o := experiment{script: script}.must(t)
	ends := 0
	for _, rows := range o.rows(t) {
		for i := range rows {
			if rows[i].truncated != 0 {
				t.Fatalf("%+v: truncated stands beside terminated", rows[i])
			}
			ends += int(rows[i].terminated)
		}
	}
	for _, e := range o.episodes {
		if !e.Terminated {
			t.Fatalf("%+v: want it terminated", e)
		}
	}
	if ends == 0 || ends != len(o.episodes) {
		t.Errorf("%d ends and %d episodes", ends, len(o.episodes))
	}
}

// An end cuts the recursion: no later row changes a target before it.
func TestS2AnEndCutsTheAdvantage(t *testing.T) {
	o := experiment{script: uneven()}.must(t)
	c := ppo.Defaults()
	d := o.dataset(2, 1)
	var before, after ppo.Targets
	if err := before.GAE(d, &c); err != nil {
		t.Fatal(err)
	}
	const env, envs = 3, 8
	rows := o.rows(t)[env][16:32]
	end := -1
	for i := range rows {
		if rows[i].terminated|rows[i].truncated != 0 && i >= 4 && i < 15 {
			end = i
		}
	}
	if end < 0 {
		t.Fatal("environment 3 has no end in the middle of the block: choose another one")
	}
	for i := end + 1; i < 16; i++ {
		d.Blocks[0].Float32(trajectory.Reward)[i*4+env] += 100
	}
	if err := after.GAE(d, &c); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		same := before.Advantage[i*envs+env] == after.Advantage[i*envs+env]
		if same != (i <= end) {
			t.Errorf("row %d, with the end at %d: advantage is the same: %v", i, end, same)
		}
	}
}

// Steps lost to a trap are in no block, no episode and no figure but the count of lost steps.
func TestS2RowsLostToATrapAreNowhere(t *testing.T) {
	for _, cue := range []plugintest.Cue{plugintest.Trap, plugintest.NaNObservation, plugintest.ErrorStatus} {
		script := uneven()
		script.Cue = func(at plugintest.At) plugintest.Cue {
			if at.Env == 5 && at.Calls == 23 && at.Renewals == 0 {
				return cue
			}
			return plugintest.Nothing
		}
		o := experiment{script: script}.must(t)
		if o.stats["rollout/lost_env_steps"] != 6*4 || o.stats["rollout/restarts"] != 1 {
			t.Errorf("cue %d: %v lost env steps and %v restarts, want the 6 rows before the trap of 4 environments, and 1",
				cue, o.stats["rollout/lost_env_steps"], o.stats["rollout/restarts"])
		}
		rows, valid := o.rows(t), 0
		for env, of := range rows {
			begins := 0
			for i := range of {
				valid += int(of[i].valid)
				if of[i].episode() == 0 && of[i].at() == 0 {
					begins++
				}
			}
			if want := 1 + env/4; begins != want {
				t.Errorf("cue %d: environment %d begins its stream %d times, want %d", cue, env, begins, want)
			}
		}
		if got := o.stats["rollout/env_steps"]; float64(valid) != got {
			t.Errorf("cue %d: %v env steps counted, %d rows are in blocks", cue, got, valid)
		}
		checkEpisodes(t, o, script)
		if err := only(o.reported("losses/first_ratio_error"), 0); err != nil {
			t.Errorf("cue %d: ratios after a restart: %v", cue, err)
		}
	}
}

// checkEpisodes compares the announced episodes with the rows: raw returns, lengths, ends, order.
func checkEpisodes(t *testing.T, o *outcome, script plugintest.Script) {
	t.Helper()
	want := map[int][]trajectory.Episode{}
	for env, rows := range o.rows(t) {
		var e trajectory.Episode
		for i := range rows {
			r := &rows[i]
			if r.valid == 0 {
				continue
			}
			if r.at() == 0 {
				e = trajectory.Episode{Env: uint32(env), Number: uint32(len(want[env]))}
			}
			e.Return += r.reward
			e.Length++
			if r.terminated|r.truncated != 0 {
				e.Terminated = r.terminated != 0
				want[env] = append(want[env], e)
				if int(e.Length) != script.Length(env, r.episode()) {
					t.Fatalf("%+v: want %d steps", e, script.Length(env, r.episode()))
				}
			}
		}
	}
	got := map[int][]trajectory.Episode{}
	for _, e := range o.tap.episodes {
		got[int(e.Env)] = append(got[int(e.Env)], e)
	}
	for env := range want {
		for i, e := range want[env] {
			if i >= len(got[env]) || got[env][i] != e {
				t.Fatalf("environment %d: episodes %v, want %v", env, got[env], want[env])
			}
		}
		if len(got[env]) != len(want[env]) {
			t.Errorf("environment %d: %d episodes announced, %d in the blocks", env, len(got[env]), len(want[env]))
		}
	}
}

func TestS2TheRunEndsWhenRestartsAreSpent(t *testing.T) {
	script := uneven()
	script.Cue = func(at plugintest.At) plugintest.Cue {
		if at.Env == 5 && at.Calls == 12 {
			return plugintest.Trap
		}
		return plugintest.Nothing
	}
	o := experiment{script: script, sets: []string{"component.rollout.max_restarts=3"}}.run(t)
	var f *env.Fault
	if !errors.As(o.err, &f) || f.Env != 5 || f.Step != 12 || f.Kind != env.FaultTrap {
		t.Fatalf("Run: %v, want the trap of environment 5", o.err)
	}
	for _, part := range []string{"rollout env 5", "trap in rl_step at step 12", "trap on cue", "restarted 3 times already"} {
		if !strings.Contains(o.err.Error(), part) {
			t.Errorf("Run: %v, want %q in it", o.err, part)
		}
	}
}

// fixed is a script with one legal action at a time, so that sampling has no influence, and with ends everywhere in a block.
func fixed(mode hostabi.Autoreset) plugintest.Script {
	s := uneven()
	s.Autoreset = mode
	s.Actions = 3
	s.Legal = func(at plugintest.At, action int) bool { return action == (at.Env+2*at.Episode+at.Step)%3 }
	return s
}

// transition is a real one, whatever its row.
type transition struct{ env, episode, step int }

// advantages returns the advantage of every real transition of an episode that ended in the same block, and how
// many of the ends were in its last row. Advantages of other rows depend on where the block ends.
func advantages(t *testing.T, o *outcome) (all map[transition]float32, atLast int) {
	t.Helper()
	c := ppo.Defaults()
	all = map[transition]float32{}
	for i := range o.blocks {
		b := &o.blocks[i]
		var targets ppo.Targets
		if err := targets.GAE(&policy.Dataset{Blocks: []trajectory.Trajectory{b.Trajectory}}, &c); err != nil {
			t.Fatal(err)
		}
		envs := b.Schema.Shape.Envs
		for env := range envs {
			ended := false
			for step := b.Schema.Shape.Steps - 1; step >= 0; step-- {
				r := b.row(step, env)
				if r.valid != 0 && r.terminated|r.truncated != 0 {
					ended = true
					if step == b.Schema.Shape.Steps-1 {
						atLast++
					}
				}
				if r.valid != 0 && ended {
					all[transition{r.env, r.episode(), r.at()}] = targets.Advantage[step*envs+env]
				}
			}
		}
	}
	return all, atLast
}

func TestS3AutoresetModesGiveEqualAdvantages(t *testing.T) {
	for name, sets := range map[string][]string{"plain": nil, "with an LSTM": {core("lstm", 4)}} {
		t.Run(name, func(t *testing.T) { modesAgree(t, sets...) })
	}
}

func modesAgree(t *testing.T, sets ...string) {
	results := map[hostabi.Autoreset]map[transition]float32{}
	for _, mode := range modes {
		o := experiment{script: fixed(mode), sets: append(sets, "component.learner.learning_rate=0", "run.stop.env_steps=1024")}.must(t)
		all, atLast := advantages(t, o)
		if atLast < 5 {
			t.Errorf("%v: %d ends in the last row of a block: the test looks at too little", mode, atLast)
		}
		results[mode] = all
	}
	for _, mode := range []hostabi.Autoreset{hostabi.NextStep, hostabi.Disabled} {
		compared := 0
		for at, want := range results[hostabi.SameStep] {
			got, ok := results[mode][at]
			if !ok {
				continue
			}
			compared++
			if got != want {
				t.Errorf("%v: advantage of %+v is %v, under same_step %v", mode, at, got, want)
			}
		}
		if compared < 200 {
			t.Errorf("%v: %d transitions compared: the test looks at too little", mode, compared)
		}
	}
}

func TestS3ThePhantomStepCountsNowhere(t *testing.T) {
	script := uneven()
	script.Autoreset = hostabi.NextStep
	script.Flaws.PhantomReward = 1000
	o := experiment{script: script, sets: []string{"policy.main.normalize_obs=true"}}.must(t)
	valid, phantom := 0, 0
	for _, rows := range o.rows(t) {
		for i := range rows {
			valid += int(rows[i].valid)
			if rows[i].valid == 0 {
				phantom++
				if rows[i].terminated|rows[i].truncated != 0 {
					t.Errorf("%+v: a phantom row has flags", rows[i])
				}
			}
		}
	}
	if phantom < 50 {
		t.Errorf("%d phantom rows: the test looks at too little", phantom)
	}
	learned := 0.0
	for _, n := range o.reported("losses/valid_rows") {
		learned += n
	}
	_, w, err := learnerOf(o)
	if err != nil {
		t.Fatal(err)
	}
	for what, got := range map[string]float64{
		"rollout/env_steps": o.stats["rollout/env_steps"], "losses/valid_rows": learned, "the normaliser": w.Normalizer.Count,
		"global_step": o.reported("global_step")[len(o.reports)-1],
	} {
		if got != float64(valid) {
			t.Errorf("%s counts %v, there are %d real rows", what, got, valid)
		}
	}
	checkEpisodes(t, o, script)
}
