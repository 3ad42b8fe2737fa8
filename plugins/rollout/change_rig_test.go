package rollout

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// world is a rig whose environments come in versions. Version k has rewards of k, and episodes whose length depends on the
// environment alone. V is 10 times the step within the episode plus the environment's index, which is also the state that the
// policy keeps from row to row. Every block is checked, no matter which versions made it.
type world struct {
	*rig
	t          *testing.T
	plugins    map[int]*plugintest.Plugin
	limit      int
	seen       []map[int]*stream // by split and environment
	rows       int               // valid ones
	ended      int               // episodes that were cut for a change
	told       int
	counted    int     // announced episodes that were not played on trial
	heights    float64 // sum of what their environments have reported
	ends       int     // how many of the counted the environment has ended, and the sum of their lengths
	lengths    float64
	made       map[int]int        // valid rows of each version
	newest     map[int]int        // by environment, the version of its newest row
	bits       []string           // what stood in the blocks, in order of arrival
	steps      map[int]uint64     // by split, where the next block begins if nothing is dropped
	gaps       map[[2]uint64]bool // by split and sequence, that the block before was gone, or rows dropped, when a change came
	went       []component.EnvsWent
	rolledBack []error
	loose      bool // blocks may be lost without notice
	errors     int
	ages       []byte // of environment 0, in the rows that were acted on
}

// stream is where one environment was at the end of the block before.
type stream struct {
	obs   []float32
	ended bool // the last row ended an episode, or belongs to none
}

// worldOptions say how a world is made; zero is synchronous, one split, same-step.
type worldOptions struct {
	mode   hostabi.Autoreset
	splits int
	async  bool
	masked bool
	limit  int
	steps  int // of a block, default 4
	flaws  map[int]func(*plugintest.Script)
	wrap   func(env.Plugin) env.Plugin
	config func(*config)
}

// worldLength is how long an episode of an environment is.
func worldLength(env int) int { return 5 + env%3 }

// worldInfos are the version with the environment's index, and the length of an episode that has ended by itself.
func worldInfos() []hostabi.Tensor {
	return []hostabi.Tensor{
		{Path: "made", Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, Flags: hostabi.TensorMax},
		{Path: "length", Flags: hostabi.TensorEpisode},
	}
}

func worldTell(version int) func(at plugintest.At, figures []float32) {
	return func(at plugintest.At, figures []float32) {
		figures[0], figures[1], figures[2] = float32(version), float32(at.Env), float32(at.Step+1)
	}
}

func (o *worldOptions) plugin(version int) *plugintest.Plugin {
	script := plugintest.Script{Name: fmt.Sprintf("v%d@1", version), Autoreset: o.mode, Actions: 3,
		Length: func(env, _ int) int { return worldLength(env) },
		Reward: func(plugintest.At) float32 { return float32(version) },
		Metric: func(at plugintest.At) (string, float64) { return "height", float64(at.Env) },
		Infos:  worldInfos(),
		Tell:   worldTell(version),
	}
	if o.masked {
		script.Legal = func(at plugintest.At, action int) bool { return (at.Step+at.Env+version+action)%3 != 0 }
	}
	if change := o.flaws[version]; change != nil {
		change(&script)
	}
	return plugintest.New(script)
}

func newWorld(t *testing.T, o worldOptions) *world {
	t.Helper()
	if o.mode == 0 {
		o.mode = hostabi.SameStep
	}
	w := &world{t: t, plugins: map[int]*plugintest.Plugin{}, limit: o.limit, made: map[int]int{}, newest: map[int]int{},
		steps: map[int]uint64{}, gaps: map[[2]uint64]bool{}}
	for v := 1; v <= 4; v++ {
		w.plugins[v] = o.plugin(v)
	}
	var first env.Plugin = w.plugins[1]
	if o.wrap != nil {
		first = o.wrap(first)
	}
	memory := trajectory.Memory{State: 2, Chunk: 2 - max(o.steps, 4)%2}
	w.rig = newRig(t, rigOptions{plugin: first, memory: memory, limit: o.limit, run: component.Run{Seed: 5, Synchronous: !o.async}, config: func(c *config) {
		c.Envs, c.Splits, c.Horizon = 6, max(o.splits, 1), max(o.steps, 4)
		if o.config != nil {
			o.config(c)
		}
	}})
	for range w.c.config.Splits {
		w.seen = append(w.seen, map[int]*stream{})
	}
	w.silent = true
	w.From("obs_ready", w.onAct)
	w.eachBlock(t, w.onTrajectory)
	w.From("episodes", func(m *hostabi.Message) { w.onEpisode(trajectory.EpisodeOf(m)) })
	return w
}

func (w *world) errorf(format string, args ...any) {
	w.t.Helper()
	if w.errors++; w.errors < 20 {
		w.t.Errorf(format, args...)
	}
}

// onTrial is the task of environments on trial.
const onTrial = 99

// value is V of one observation.
func value(obs []float32) float32 { return 10*obs[plugintest.ObsStep] + obs[plugintest.ObsEnv] }

// onAct answers as an inference does.
func (w *world) onAct(m *hostabi.Message) {
	q := trajectory.ActRequestOf(m)
	tr, err := trajectory.Borrowed(w.Host.Arenas, q.Block)
	if err != nil {
		w.Host.Fail(err)
		return
	}
	n := tr.Schema.Shape.Envs
	for env := range n {
		o := obsOf(tr, trajectory.Obs, q.T, env)
		w.wantState(tr, q.T, env, tr.Ages(q.T)[env], o)
		tr.Float32(trajectory.Value)[q.T*n+env] = value(o)
		if q.ValueOnly {
			continue
		}
		if o[plugintest.ObsEnv] == 0 {
			w.ages = append(w.ages, tr.Ages(q.T)[env])
		}
		copy(stateOf(tr, q.T+1, env), []float32{o[plugintest.ObsStep] + 1, o[plugintest.ObsEnv]})
		action := &tr.Int32(trajectory.Action)[q.T*n+env]
		*action = int32((uint64(env) + q.Step) % 3)
		if tr.Schema.Has(trajectory.Mask) {
			if mask := tr.Row(trajectory.Mask, q.T); mask.Data[env*mask.StrideRow+int(*action)*mask.StrideElem] == 0 {
				tr.FirstLegal(env, q.T)
			}
		}
	}
	if q.Bootstrap {
		for env, flag := range tr.Row(trajectory.Truncated, q.T-1).Data {
			if flag != 0 {
				o := obsOf(tr, trajectory.FinalObs, 0, env)
				w.wantState(tr, q.T, env, 1, o)
				tr.Float32(trajectory.Bootstrap)[(q.T-1)*n+env] = value(o)
			}
		}
	}
	reply := hostabi.Message{T: m.T, Split: m.Split, Inline: m.Inline, Handle: m.Handle, PolicyVersion: 3}
	if err := w.answers.Emit(reply); err != nil {
		w.Host.Fail(err)
	}
}

// stateOf is the policy's state for an environment before a row.
func stateOf(tr trajectory.Trajectory, row, env int) []float32 {
	m := tr.Row(trajectory.CoreState, tr.Schema.StateRow(row))
	return m.Float32()[env*m.StrideRow/4:][:m.Elems]
}

// wantState checks the state before a row against the row's observation.
func (w *world) wantState(tr trajectory.Trajectory, row, env int, age byte, o []float32) {
	if w.c.config.WholeEpisodes && w.c.splits[0].rows.whole.idles(env) {
		return
	}
	step, got := o[plugintest.ObsStep], stateOf(tr, row, env)
	if (age == 0) != (step == 0) || age > 0 && (got[0] != step || got[1] != o[plugintest.ObsEnv]) {
		w.errorf("row %d of environment %v, step %v, has age %d and state %v", row, o[plugintest.ObsEnv], step, age, got)
	}
}

func obsOf(tr trajectory.Trajectory, c trajectory.Column, row, env int) []float32 {
	m := tr.Row(c, row)
	return m.Float32()[env*m.StrideRow/4:][:plugintest.ObsElems]
}

func (w *world) onEpisode(e trajectory.Episode) {
	if w.told++; e.Task != onTrial {
		w.counted++
		w.heights += float64(e.Env)
		if e.Terminated {
			w.ends++
			w.lengths += float64(e.Length)
		}
	}
	if want := worldLength(int(e.Env)); int(e.Length) != want && (w.limit == 0 || int(e.Length) != w.limit) {
		w.errorf("environment %d is told to have had an episode of %d steps, want %d", e.Env, e.Length, want)
	}
}

// versionOfID returns the version of a plugin version's ID.
func (w *world) versionOfID(id uint64) int {
	for v, p := range w.plugins {
		if versionID(p.Hash()) == id {
			return v
		}
	}
	w.errorf("plugin version %x", id)
	return 0
}

// onTrajectory holds a block against what must be true.
func (w *world) onTrajectory(m *hostabi.Message, tr trajectory.Trajectory) {
	bits := ""
	for _, c := range []trajectory.Column{trajectory.Action, trajectory.Obs, trajectory.Reward, trajectory.Terminated,
		trajectory.Truncated, trajectory.Value, trajectory.Valid, trajectory.PluginVersion} {
		bits += string(tr.Bytes(c))
	}
	w.bits = append(w.bits, bits)
	valid := 0
	split := int(m.Split)
	if first := tr.Meta().FirstStep; first != w.steps[split] || w.loose || w.gaps[[2]uint64{uint64(split), tr.Meta().Sequence}] {
		w.seen[split], w.steps[split] = map[int]*stream{}, first
	}
	w.steps[split] += uint64(tr.Schema.Shape.Steps)
	for env := range tr.Schema.Shape.Envs {
		valid += w.check(tr, int(m.Split), env)
	}
	if tr.Meta().ValidRows != uint32(valid) {
		w.errorf("block %+v has %d valid rows", *tr.Meta(), valid)
	}
	w.rows += valid
}

// check follows one environment through a block and returns its valid rows.
func (w *world) check(tr trajectory.Trajectory, split, env int) (valid int) {
	at, steps, n := w.seen[split][env], tr.Schema.Shape.Steps, tr.Schema.Shape.Envs
	if at == nil {
		at = &stream{ended: true}
		w.seen[split][env] = at
	}
	first := obsOf(tr, trajectory.Obs, 0, env)
	if at.obs != nil && !slices.Equal(at.obs, first) && (first[plugintest.ObsStep] != 0 || !at.ended) {
		w.errorf("environment %d goes on with %v after %v, ended %v", env, first, at.obs, at.ended)
	}
	for t := range steps {
		i := t*n + env
		o, next := obsOf(tr, trajectory.Obs, t, env), obsOf(tr, trajectory.Obs, t+1, env)
		terminated, truncated := tr.Bytes(trajectory.Terminated)[i] != 0, tr.Bytes(trajectory.Truncated)[i] != 0
		if int(o[plugintest.ObsEnv]) != int(tr.Meta().FirstEnv)+env {
			w.errorf("environment %d observes %v", env, o)
		}
		if got := tr.Float32(trajectory.Value)[i]; got != value(o) {
			w.errorf("row %d of environment %d has value %v, want %v", t, env, got, value(o))
		}
		if padding := w.c.config.WholeEpisodes && tr.Bytes(trajectory.Valid)[i] == 0; t%tr.Schema.StoredEvery() == 0 && !padding {
			w.wantState(tr, t, env, tr.Ages(t)[env], o)
		}
		if tr.Bytes(trajectory.Valid)[i] == 0 {
			at.ended = true
			if terminated || truncated || tr.Float32(trajectory.Reward)[i] != 0 {
				w.errorf("row %d of environment %d belongs to no episode, and has an end or a reward", t, env)
			}
			continue
		}
		valid++
		w.checkStep(tr, t, env, o, next, terminated, truncated)
		at.ended = terminated || truncated
	}
	at.obs = slices.Clone(obsOf(tr, trajectory.Obs, steps, env))
	return valid
}

// checkStep looks at a row that belongs to an episode.
func (w *world) checkStep(tr trajectory.Trajectory, t, env int, o, next []float32, terminated, truncated bool) {
	i := t*tr.Schema.Shape.Envs + env
	v := w.versionOfID(tr.Uint64(trajectory.PluginVersion)[i])
	w.made[v]++
	w.newest[int(o[plugintest.ObsEnv])] = v
	made := int(o[plugintest.ObsStep]) + 1
	info := tr.Row(trajectory.Info, t)
	figures := [3]float32{info.Float32()[env*info.StrideRow/4], info.Float32()[(env*info.StrideRow+info.StrideElem)/4],
		tr.Float32(trajectory.Info.At(1))[i]}
	if !terminated {
		figures[2] = float32(made) // undefined
	}
	if want := [3]float32{float32(v), o[plugintest.ObsEnv], float32(made)}; figures != want {
		w.errorf("row %d of environment %d, of version %d, has the infos %v, want %v", t, env, v, figures, want)
	}
	if got := tr.Float32(trajectory.Reward)[i]; got != float32(v) {
		w.errorf("row %d of environment %d has reward %v of another version than %d", t, env, got, v)
	}
	natural := made == worldLength(int(o[plugintest.ObsEnv]))
	limited := made == w.limit
	switch {
	case terminated != natural:
		w.errorf("row %d of environment %d, step %d: terminated %v", t, env, made, terminated)
	case terminated && truncated:
		w.errorf("row %d of environment %d is terminated and truncated", t, env)
	case !terminated && !truncated:
		if limited || int(next[plugintest.ObsStep]) != made || next[plugintest.ObsEpisode] != o[plugintest.ObsEpisode] {
			w.errorf("row %d of environment %d: %v after %v, and no end", t, env, next, o)
		}
	case truncated:
		if !limited {
			w.ended++
		}
		want := float32(10*made) + o[plugintest.ObsEnv]
		if got := tr.Float32(trajectory.Bootstrap)[i]; got != want {
			w.errorf("row %d of environment %d is truncated with bootstrap_value %v, want %v", t, env, got, want)
		}
	}
}

// prepare makes a change to a version, or fails the test.
func (w *world) prepare(version int, o component.EnvChange) component.PreparedEnvs {
	w.t.Helper()
	if o.Plugin == nil {
		o.Plugin = w.plugins[version]
	}
	o.Plugin = limited(w.t, o.Plugin, w.limit)
	if o.Envs > 0 {
		o.Task = onTrial
	}
	o.Went = func(e component.EnvsWent) { w.went = append(w.went, e) }
	o.RolledBack = func(err error) {
		w.rolledBack = append(w.rolledBack, err)
		for i, s := range w.c.splits {
			w.gaps[[2]uint64{uint64(i), s.sequence}] = true
		}
	}
	p, err := w.c.PrepareEnvs(w.t.Context(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { p.Close() })
	return p
}

// change makes a change now, runs until the environments have gone over, and settles it unless it is on probation.
func (w *world) change(version int, o component.EnvChange) component.PreparedEnvs {
	w.t.Helper()
	p := w.prepare(version, o)
	before := len(w.went)
	w.commit(p)
	w.run(func() bool { return len(w.went) > before })
	if !o.Probation {
		p.Settle()
	}
	return p
}

// commit commits a change.
func (w *world) commit(p component.PreparedEnvs) {
	w.t.Helper()
	for i, s := range w.c.splits {
		if !s.rows.writing || p.(*change).at() == component.AtNow {
			w.gaps[[2]uint64{uint64(i), s.sequence}] = true
		}
	}
	if err := p.Commit(); err != nil {
		w.t.Fatal(err)
	}
}

// run runs until cond holds, and says where the splits are if that does not happen.
func (w *world) run(cond func() bool) {
	w.t.Helper()
	met := false
	defer func() {
		if met {
			return
		}
		for i, s := range w.c.splits {
			w.t.Logf("split %d: writing %v, asked %v, row %d, next %+v, versions %+v", i, s.rows.writing, s.asked, s.t, s.next, s.versions)
		}
	}()
	w.MustRun(cond)
	met = true
}

// more runs until so many more blocks have been handed over.
func (w *world) more(blocks int) {
	w.t.Helper()
	blocks += len(w.blocks)
	w.run(func() bool { return len(w.blocks) >= blocks })
}

// inRow runs until a split is asked about that row.
func (w *world) inRow(split, row int) {
	w.t.Helper()
	s := w.c.splits[split]
	w.run(func() bool { return s.rows.writing && s.asked != 0 && s.t == row })
}

// balance compares the counters with the rows seen, and looks for leaks.
func (w *world) balance() {
	w.t.Helper()
	w.rest()
	w.MustSettle()
	w.c.closing.group.Wait()
	counted := w.counter("rollout/env_steps")
	if int(counted) != w.rows {
		w.errorf("%d env steps counted, %d valid rows seen", counted, w.rows)
	}
	for v, p := range w.plugins {
		name := "version/" + p.Hash()[:8] + "/"
		if got := w.counter(name + "env_steps"); int(got) != w.made[v] {
			w.errorf("%d env steps counted of version %d, %d seen", got, v, w.made[v])
		}
	}
	for name, want := range map[string]struct {
		count int
		sum   float64
	}{"height": {w.counted, w.heights}, "made/1": {w.counted, w.heights}, "length": {w.ends, w.lengths}} {
		if d := w.Host.Stats.Histogram("env/" + name).Snapshot(); int(d.Count) != want.count || d.Sum != want.sum {
			w.errorf("env/%s has %d numbers that sum up to %v, after %d episodes with %v", name, d.Count, d.Sum, want.count, want.sum)
		}
	}
	if ended, lost := w.counter("swap/ended_episodes"), w.counter("rollout/lost_episodes"); int(ended+lost) < w.ended {
		w.errorf("%d episodes counted as ended for changes and %d as lost, %d seen", ended, lost, w.ended)
	}
}

// rest pauses the component, and runs until it has paused.
func (w *world) rest() {
	w.t.Helper()
	rested := false
	w.c.Pause(func() { rested = true })
	w.run(func() bool { return rested })
}

// wantOpen compares the batches of each version that are not closed.
func (w *world) wantOpen(want map[int]int) {
	w.t.Helper()
	if got := w.open(); !maps.Equal(got, want) {
		w.t.Errorf("the open batches of each version are %v, want %v", got, want)
	}
}

// open returns the batches of each version that are not closed.
func (w *world) open() map[int]int {
	w.c.closing.group.Wait()
	list := map[int]int{}
	for v, p := range w.plugins {
		if n := p.Open(); n != 0 {
			list[v] = n
		}
	}
	return list
}
