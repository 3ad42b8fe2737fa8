package rollout

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

func TestConfigure_NamesEveryKeyThatIsWrong(t *testing.T) {
	for want, change := range map[string]func(*config){
		"":                            func(*config) {},
		"`env` is missing":            func(c *config) { c.Env = "" },
		"`envs` is 0, want 1 to":      func(c *config) { c.Envs = 0 },
		"`envs` is 100000, want 1 to": func(c *config) { c.Envs = 100000 },
		"`splits` is 0, want 1":       func(c *config) { c.Splits = 0 },
		"`envs` = 6 is not divisible by splits = 4: use 4 or 8": func(c *config) { c.Splits = 4 },
		"`envs` = 1 is not divisible by splits = 2: use 2 or 2": func(c *config) { c.Envs = 1 },
		"`horizon` is 0, want 1 to":                             func(c *config) { c.Horizon = 0 },
		"`blocks` is 65, want":                                  func(c *config) { c.Blocks = 65 },
		"`max_restarts` is -1, want 0 or more":                  func(c *config) { c.MaxRestarts = -1 },
		"`episode_limit` is a wrapper of the environment now: write wrap = [{ time_limit = 7 }] in [env.scripted]": func(c *config) {
			limit := 7
			c.EpisodeLimit = &limit
		},
		"`layout` is \"rows\", want auto, aos or soa": func(c *config) { c.Layout = "rows" },
		"`reward` is a wrapper of the environment now: write wrap = [{ reward_clip = \"sign\" }, { reward_scale = 0.5 }, { reward_clip = 8 }] in [env.scripted]": func(c *config) {
			c.Reward = &env.RolloutRewards{Scale: 0.5, Clip: 8, Sign: true}
		},
	} {
		err := New().Configure(func(into any) error {
			c := into.(*config)
			small(c)
			change(c)
			return nil
		})
		if want == "" && err == nil {
			continue
		}
		var bad *component.ConfigError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	err := New().Configure(func(into any) error {
		*into.(*config) = config{Layout: "aos"}
		return nil
	})
	if lines := strings.Count(err.Error(), "\n"); lines != 3 {
		t.Errorf("an empty table gives %d lines, want all that is wrong with it in 4:\n%v", lines+1, err)
	}
}

func TestStart_SaysWhatIsMissing(t *testing.T) {
	for want, c := range map[string]struct {
		env, layout string
		script      plugintest.Script
	}{
		"\"other\" is not declared": {"other", "auto", plugintest.Script{}},
		"3 environments":            {"scripted", "auto", plugintest.Script{MaxEnvs: 2}},
		"does not take":             {"scripted", "soa", plugintest.Script{Caps: 1 << 30}},
	} {
		p := plugintest.New(c.script)
		x := New()
		err := plugintest.StartError(t, x, plugintest.RigOptions{Envs: map[string]env.Plugin{"scripted": p}}, func(into any) error {
			small(into.(*config))
			into.(*config).Env, into.(*config).Layout = c.env, c.layout
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Start: %v, want %q", err, want)
		}
		if err := x.Stop(); err != nil || p.Open() != 0 {
			t.Errorf("Stop after a failed Start: %v, %d batches open", err, p.Open())
		}
	}
}

func TestRollout_HandsOverBlocksAndEpisodes(t *testing.T) {
	script := plugintest.Script{
		Length: func(env, _ int) int { return 2 + env%2 },
		Reward: func(at plugintest.At) float32 { return float32(at.Env) },
	}
	r := newRig(t, rigOptions{script: script})
	r.until(t, 6)
	for i, b := range r.blocks {
		m := b.meta
		if m.Sequence != uint64(i/2) || m.FirstEnv != uint32(3*m.Split) || m.FirstStep != 4*m.Sequence || m.ValidRows != 12 ||
			m.MinVersion != 3 || m.MaxVersion != 3 || m.PluginVersion == 0 {
			t.Errorf("block %d has %+v", i, m)
		}
	}
	// In each block of split 0: (t, env) order.
	want := []trajectory.Episode{{Return: 0, Length: 2, Env: 0, Terminated: true}, {Return: 4, Length: 2, Env: 2, Terminated: true},
		{Return: 3, Length: 3, Env: 1, Terminated: true}, {Return: 0, Length: 2, Env: 0, Terminated: true, Number: 1}}
	for i, e := range want {
		if r.episodes[i] != e {
			t.Errorf("episodes %+v, want them to begin with %+v", r.episodes, want)
			break
		}
	}
	if got := r.counter("rollout/env_steps"); got != 6*12 {
		t.Errorf("%d env steps counted, want 72", got)
	}
	// Every block but the first of each split has a carried row of 3 observations.
	if got := r.counter("rollout/carried_bytes"); got < 4*3*4*plugintest.ObsElems || got > 6*3*4*plugintest.ObsElems {
		t.Errorf("%d carried bytes for 4 to 6 rows of 3 observations", got)
	}
}

// What wrappers copy is counted with the blocks that it was for: 52 bytes an env step here, and some for resets and ends.
func TestRollout_CountsWhatWrappersCopy(t *testing.T) {
	p, err := wrap.New(plugintest.New(plugintest.Script{Picture: true}), []env.Wrapper{{"resize": []any{int64(1), int64(2)}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, rigOptions{plugin: p})
	r.until(t, 6)
	if got := r.counter("rollout/wrapped_bytes"); got < 6*12*52 || got > 6*12*52*2 {
		t.Errorf("%d bytes are counted for 72 env steps", got)
	}
}

// More episodes in one block than can wait for their reader end nothing; dropped episodes are counted.
func TestRollout_CountsEpisodesThatItCannotTell(t *testing.T) {
	script := plugintest.Script{Length: func(int, int) int { return 1 }}
	r := newRig(t, rigOptions{script: script, config: func(c *config) { c.Envs, c.Splits, c.Horizon = 2000, 1, 40 }})
	r.until(t, 1)
	r.MustRun(func() bool { return len(r.episodes)+int(r.counter("rollout/episodes_untold")) >= 80000 })
	if untold := r.counter("rollout/episodes_untold"); untold == 0 || untold > 80000-1<<16 {
		t.Errorf("%d episodes told and %d not, of 80000", len(r.episodes), untold)
	}
}

// When nobody releases blocks the rollout uses up its own and waits; then it continues.
func TestRollout_WaitsForBlocks(t *testing.T) {
	r := newRig(t, rigOptions{config: func(c *config) { c.Blocks = 3 }})
	r.keep = true
	r.until(t, 6)
	asked := len(r.asked)
	r.MustSettle()
	if len(r.blocks) != 6 || len(r.asked) != asked {
		t.Errorf("%d blocks handed over of 6 that there are, and %d more requests", len(r.blocks), len(r.asked)-asked)
	}
	if s := r.c.arena.Stats(); s.Live != 6 || s.Write != 0 {
		t.Errorf("arena %+v, want all 6 blocks live", s)
	}
	r.letGo(t)
	r.MustRun(func() bool { return len(r.blocks) == 6 })
	if got := r.blocks[5].meta; got.Split != r.blocks[0].meta.Split && got.Sequence != 3 {
		t.Errorf("the block that came free became %+v", got)
	}
}

// A native plugin may take a free block, or write into its word that it is taken, before the rollout has it.
func TestRollout_ContinuesWhenAFreedBlockIsTaken(t *testing.T) {
	r := newRig(t, rigOptions{config: func(c *config) { c.Blocks = 3 }})
	r.keep = true
	r.until(t, 6)
	block := r.blocks[0].lease.Handle()
	r.letGo(t)
	stolen, err := r.c.arena.LoanBlock(block.Block())
	if err != nil {
		t.Fatal(err)
	}
	r.MustSettle()
	if len(r.blocks) != 5 {
		t.Errorf("%d blocks handed over, want 5: one was taken", len(r.blocks))
	}
	if err := stolen.Abort(); err != nil {
		t.Fatal(err)
	}
	r.MustRun(func() bool { return len(r.blocks) == 6 })
}

func TestRollout_StopsWhereverItIs(t *testing.T) {
	for rounds := range 12 {
		r := newRig(t, rigOptions{})
		r.keep = rounds%2 == 0
		n := 0
		r.MustRun(func() bool { n++; return n > rounds })
		if err := r.c.Stop(); err != nil {
			t.Errorf("Stop after %d rounds: %v", rounds, err)
		}
		if r.plugin.Open() != 0 {
			t.Errorf("%d batches left open", r.plugin.Open())
		}
	}
}

func TestRollout_SynchronousModeHasOneBlockPerSplit(t *testing.T) {
	r := newRig(t, rigOptions{run: component.Run{Synchronous: true}})
	if got := r.c.arena.Blocks(); got != 2 {
		t.Errorf("%d blocks, want 2", got)
	}
	f := r.c.Flow()
	if !reflect.DeepEqual(f, component.Flow{Splits: 2, Blocks: 4, BlockRows: 12, Envs: 6}) {
		t.Errorf("Flow %+v", f)
	}
}

func TestRollout_LayoutIsTheGuestsChoiceOrTheFiles(t *testing.T) {
	for _, c := range []struct {
		layout string
		caps   hostabi.Caps
		soa    bool
	}{
		{"auto", hostabi.CapStrides, false}, {"auto", hostabi.CapPreferSoA, true}, {"aos", hostabi.CapPreferSoA, false},
		{"soa", hostabi.CapStrides, true},
	} {
		r := newRig(t, rigOptions{script: plugintest.Script{Caps: c.caps}, config: func(x *config) { x.Layout = c.layout }})
		if r.c.schema.Shape.SoA != c.soa {
			t.Errorf("layout %q with caps %d: SoA %v", c.layout, c.caps, r.c.schema.Shape.SoA)
		}
	}
}

func TestSnapshot_IsTakenBetweenBlocks(t *testing.T) {
	r := newRig(t, rigOptions{})
	r.silent = true
	r.MustSettle()
	if s, err := r.c.Snapshot(); err != nil || len(s.Blobs) != 0 {
		t.Errorf("before the first step: %v, %d instances saved; want none, the seeds are enough", err, len(s.Blobs))
	}
	r.silent = false
	r.answer(r.asked[0])
	r.answer(r.asked[1])
	r.MustRun(func() bool { return len(r.blocks) == 2 && r.c.splits[0].t == 2 })
	if _, err := r.c.Snapshot(); !errors.Is(err, component.ErrNoSnapshot) || !strings.Contains(err.Error(), "split 0 is in the middle") {
		t.Errorf("in the middle of a block: %v", err)
	}
	r = newRig(t, rigOptions{script: plugintest.Script{Flaws: plugintest.Flaws{NoSnapshot: true}}})
	r.keep = true
	r.until(t, 4)
	if _, err := r.c.Snapshot(); !errors.Is(err, component.ErrNoSnapshot) || !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("of environments without snapshots: %v", err)
	}
}

// stall runs a rig until all of its blocks are kept, so that it waits between two blocks.
func stall(t *testing.T, r *rig) component.State {
	t.Helper()
	r.keep = true
	r.until(t, 4)
	r.MustSettle()
	return snapshot(t, r)
}

// snapshot is the state of a rig's component, as a checkpoint keeps it.
func snapshot(t *testing.T, r *rig) component.State {
	t.Helper()
	s, err := r.c.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(s.Meta)
	if err != nil {
		t.Fatal(err)
	}
	return component.State{RawMeta: raw, Blobs: s.Blobs}
}

func TestRestore_ContinuesWhereItWas(t *testing.T) {
	script := plugintest.Script{
		Autoreset: hostabi.NextStep, Actions: 3, Legal: func(at plugintest.At, action int) bool { return true },
		Length: func(env, episode int) int { return 3 + (env+episode)%4 },
	}
	r := newRig(t, rigOptions{script: script, limit: 4})
	s := stall(t, r)
	episodes := len(r.episodes)
	for range 4 {
		r.letGo(t)
	}
	r.until(t, 4)
	for name, state := range map[string]component.State{"as it is taken": s, "with its columns apart": columnsApart(t, r, s)} {
		t.Run(name, func(t *testing.T) {
			next := newRig(t, rigOptions{script: script, limit: 4})
			if err := next.c.Restore(state); err != nil {
				t.Fatal(err)
			}
			next.keep = true
			next.until(t, 4)
			for i, b := range next.blocks {
				if b.meta != r.blocks[i].meta {
					t.Errorf("block %d of the restored rollout is %+v, want %+v", i, b.meta, r.blocks[i].meta)
				}
				for k, v := range b.obs {
					if v != r.blocks[i].obs[k] {
						t.Fatalf("block %d of the restored rollout observes %v at %d, want %v", i, v, k, r.blocks[i].obs[k])
					}
				}
			}
			for i, e := range next.episodes {
				if e != r.episodes[episodes+i] {
					t.Errorf("episode %d after the restore is %+v, want %+v", i, e, r.episodes[episodes+i])
				}
			}
			if len(next.episodes) == 0 {
				t.Error("no episode ended: the test looks at too little")
			}
		})
	}
}

// columnsApart writes a snapshot in the form that has the carried obs and mask by themselves.
func columnsApart(t *testing.T, r *rig, s component.State) component.State {
	t.Helper()
	var splits []map[string]any
	if err := s.Decode(&splits); err != nil {
		t.Fatal(err)
	}
	obs, _ := r.c.schema.Layout(trajectory.Obs)
	for _, split := range splits {
		carry, err := base64.StdEncoding.DecodeString(split["Carry"].(string))
		if err != nil || len(carry) <= obs.StrideT {
			t.Fatalf("%d bytes are carried, %v", len(carry), err)
		}
		split["CarryObs"], split["CarryMask"] = carry[:obs.StrideT], carry[obs.StrideT:]
		delete(split, "Carry")
	}
	raw, err := json.Marshal(splits)
	if err != nil {
		t.Fatal(err)
	}
	return component.State{RawMeta: raw, Blobs: s.Blobs}
}

func TestRestore_RefusesWhatDoesNotFit(t *testing.T) {
	s := stall(t, newRig(t, rigOptions{}))
	for want, o := range map[string]rigOptions{
		"rollout state has 2 splits, the pipeline 3":  {config: func(c *config) { c.Splits = 3 }},
		"split 0: state is of other environments":     {config: func(c *config) { c.Envs = 8 }},
		"split 0: state is of other environments ":    {script: plugintest.Script{Legal: func(plugintest.At, int) bool { return true }}},
		"not supported by this environment: snapshot": {script: plugintest.Script{Autoreset: hostabi.NextStep}},
	} {
		err := newRig(t, o).c.Restore(s)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	damaged := component.State{RawMeta: s.RawMeta, Blobs: map[string][]byte{"split0.instance": nil}}
	if err := newRig(t, rigOptions{}).c.Restore(damaged); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("a state without instances: %v", err)
	}
	if err := newRig(t, rigOptions{}).c.Restore(component.State{RawMeta: []byte("{")}); err == nil {
		t.Error("a state that is no JSON is taken")
	}
}

// An environment's reports during an episode make one number, however long the episode is.
func TestMetric_IsAMeanOverEpisodes(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		for _, limit := range []int{0, 3} {
			r := newRig(t, rigOptions{script: heights(mode), limit: limit})
			r.until(t, 12)
			r.wantHeights(t, fmt.Sprintf("%v, limit %d", mode, limit))
		}
	}
}

// wantHeights compares the reports and infos of the environments of heights with the episodes.
func (r *rig) wantHeights(t *testing.T, what string) {
	t.Helper()
	count, sum := map[string]int{}, map[string]float64{}
	for _, e := range r.episodes {
		first, last := float64(10*e.Env), float64(10*e.Env+e.Length-1)
		own := map[string]float64{"height": heightOf(e), "mean": heightOf(e), "sum": heightOf(e) * float64(e.Length), "info": last, "max": last,
			"of/both/0": first, "of/both/1": first}
		if e.Terminated { // the host's limit is no end to the environment
			own["end"] = last
		}
		for name, value := range own {
			count[name]++
			sum[name] += value
		}
	}
	for name, n := range count {
		d := r.Host.Stats.Histogram("env/" + name).Snapshot()
		if int(d.Count) != n || math.Abs(d.Sum-sum[name]) > 1e-9 {
			t.Errorf("%s: env/%s has %d numbers that sum up to %v, want %v of %d episodes", what, name, d.Count, d.Sum, sum[name], n)
		}
	}
	if len(count) < 8 {
		t.Errorf("%s: only %v have ended", what, count)
	}
}

// heights is a script whose environments report a number in each step.
func heights(mode hostabi.Autoreset) plugintest.Script {
	return plugintest.Script{Autoreset: mode, Length: func(env, episode int) int { return 2 + (env+episode)%5 },
		Metric: func(at plugintest.At) (string, float64) { return "height", float64(10*at.Env + at.Step) },
		Infos: []hostabi.Tensor{{}, {Path: "sum", Flags: hostabi.TensorSum}, {Path: "mean", Flags: hostabi.TensorMean},
			{Path: "of/both", Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, Flags: hostabi.TensorMin},
			{Path: "max", Flags: hostabi.TensorMax}, {Path: "end", Flags: hostabi.TensorEpisode | hostabi.TensorSum}},
		Tell: func(at plugintest.At, figures []float32) {
			for i := range figures {
				figures[i] = float32(10*at.Env + at.Step)
			}
		}}
}

// heightOf is the mean over the steps of an episode.
func heightOf(e trajectory.Episode) float64 { return float64(10*e.Env) + float64(e.Length-1)/2 }

// anonymous is a plugin whose runtime does not know which environment reports.
type anonymous struct{ env.Plugin }

func (p anonymous) NewEnv(o env.Options) (env.Env, error) {
	to := o.Metric
	o.Metric = func(m env.Metric) {
		m.Env = -1
		to(m)
	}
	return p.Plugin.NewEnv(o)
}

func TestMetric_OfAnUnknownEnvironmentCountsByItself(t *testing.T) {
	r := newRig(t, rigOptions{plugin: anonymous{plugintest.New(heights(hostabi.SameStep))}})
	r.until(t, 2)
	steps := r.counter("rollout/env_steps")
	if d := r.Host.Stats.Histogram("env/height").Snapshot(); d.Count < steps || d.Min != 0 || d.Max < 50 {
		t.Errorf("env/height has %d numbers from %v to %v after %d env steps, want one of each step", d.Count, d.Min, d.Max, steps)
	}
}

// The reports of a running episode are saved with it.
func TestMetric_ContinuesAfterARestore(t *testing.T) {
	r := newRig(t, rigOptions{script: heights(hostabi.SameStep)})
	s := stall(t, r)
	next := newRig(t, rigOptions{script: heights(hostabi.SameStep)})
	if err := next.c.Restore(s); err != nil {
		t.Fatal(err)
	}
	next.until(t, 4)
	next.wantHeights(t, "restored")
}

// A step allocates nothing, from the actions that arrive to the next request.
func TestStep_AllocatesNothing(t *testing.T) {
	for _, mode := range []hostabi.Autoreset{hostabi.SameStep, hostabi.NextStep, hostabi.Disabled} {
		script := heights(mode)
		c := New().(*Rollout)
		r := plugintest.NewRig(t, c, plugintest.RigOptions{Name: "rollout", Envs: map[string]env.Plugin{"scripted": limited(t, plugintest.New(script), 7)}},
			func(into any) error {
				small(into.(*config))
				into.(*config).Horizon = 1000
				return nil
			})
		r.MustSettle()
		s := c.splits[0]
		clear(s.rows.tr.Bytes(trajectory.Action))
		m := trajectory.ActRequest{Block: s.loan.Handle()}.Message()
		n := testing.AllocsPerRun(500, func() {
			m.T = uint32(s.t)
			c.onActions(&m)
		})
		if n != 0 || s.t < 500 {
			t.Errorf("%v: %v allocations a step after %d steps, want 0", mode, n, s.t)
		}
	}
}

func TestPluginVersion_IsTheBeginningOfTheHash(t *testing.T) {
	if got := versionID("0102030405060708ff"); got != 0x0102030405060708 {
		t.Errorf("got %x", got)
	}
	if versionID("no hash") != 0 || versionID("0102") != 0 {
		t.Error("what is no hash has a version")
	}
}
