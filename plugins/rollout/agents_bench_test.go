package rollout

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// herd is an env.Plugin whose environments are as many animals, which do the same whether each has its own environment or several
// share one: one plus a multiple of its action is added to its observation, and after a hundred steps an episode is cut off.
type herd struct{ spec hostabi.EnvSpec }

const (
	herdObs    = 4
	herdLength = 100
)

// newHerd describes environments of so many animals. Each animal has its own flags if apart is set. turns adds the column of who
// acts, which is everybody.
func newHerd(each int, apart, turns bool) herd {
	tensor := func(role hostabi.Role, d hostabi.DType, elems ...uint32) hostabi.Tensor {
		t := hostabi.Tensor{Role: role, DType: d, Rank: uint8(len(elems))}
		copy(t.Shape[:], elems)
		if flag := role == hostabi.RoleTerminated || role == hostabi.RoleTruncated; each > 1 && (apart || !flag) {
			t.Flags = hostabi.TensorPerAgent
		}
		return t
	}
	s := hostabi.EnvSpec{Name: "herd@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Tensors: []hostabi.Tensor{
		tensor(hostabi.RoleAction, hostabi.I32), tensor(hostabi.RoleObservation, hostabi.F32, herdObs), tensor(hostabi.RoleReward, hostabi.F32),
		tensor(hostabi.RoleTerminated, hostabi.U8), tensor(hostabi.RoleTruncated, hostabi.U8), tensor(hostabi.RoleFinalObservation, hostabi.F32, herdObs),
	}}
	s.Tensors[0].N = 2
	if each > 1 {
		s.Groups = []hostabi.Group{{Name: "animals", Agents: each}}
	}
	if turns {
		s.Tensors = append(s.Tensors, tensor(hostabi.RoleActive, hostabi.U8))
	}
	return herd{s}
}

func (p herd) Spec() hostabi.EnvSpec { return p.spec }
func (p herd) Hash() string          { return "herd" }
func (p herd) Close() error          { return nil }

func (p herd) NewEnv(o env.Options) (env.Env, error) {
	return &herdEnv{herd: p}, o.Check(&p.spec, 1)
}

type herdEnv struct {
	herd
	block env.Block
	age   int
}

func (e *herdEnv) Spec() *hostabi.EnvSpec    { return &e.spec }
func (e *herdEnv) Renew() error              { e.age = 0; return nil }
func (e *herdEnv) Bind(b env.Block) error    { e.block = b; return nil }
func (e *herdEnv) Snapshot() ([]byte, error) { return nil, env.ErrUnsupported }
func (e *herdEnv) Restore([]byte) error      { return env.ErrUnsupported }
func (e *herdEnv) obs(t int) []float32       { return e.block.Row(trajectory.Obs, t).Float32() }

func (e *herdEnv) Reset(t int, _ []uint8, _ []uint64) error {
	e.age = 0
	clear(e.obs(t))
	e.act(t)
	return nil
}

// act says that everybody does.
func (e *herdEnv) act(t int) {
	acts := e.block.Acts(t)
	for i := range acts {
		acts[i] = 1
	}
}

func (e *herdEnv) Step(t int) error {
	e.age++
	over := e.age == herdLength
	now, next := e.obs(t), e.obs(t+1)
	action, reward := e.block.Row(trajectory.Action, t).Int32(), e.block.Row(trajectory.Reward, t).Float32()
	for i, a := range action {
		reward[i] = float32(a)
		for k := i * herdObs; k < (i+1)*herdObs; k++ {
			next[k] = 0.5*now[k] + float32(a) - 0.5
		}
	}
	clear(e.block.Row(trajectory.Terminated, t).Data)
	truncated := e.block.Row(trajectory.Truncated, t).Data
	clear(truncated)
	if over {
		e.age = 0
		copy(e.block.Row(trajectory.FinalObs, 0).Float32(), next)
		clear(next)
		for i := range truncated {
			truncated[i] = 1
		}
	}
	e.act(t + 1)
	return nil
}

// BenchmarkAgents measures, in CPU time per row, a rollout of 64 environments of 4 agents that always act, against a rollout of 256
// environments of one agent each, in turns, with a network of two layers of 64. It reports the ratio of their rows per second; control
// is the ratio of two rollouts of single agents. The environments are in Go, or guests in C.
func BenchmarkAgents(b *testing.B) {
	const agents, envs = 4, 64
	measure := func(name string, each int, several, single env.Plugin) {
		b.Run(name, func(b *testing.B) {
			beside(b, newFlock(b, several, envs*agents/each), newFlock(b, single, envs*agents))
		})
	}
	one := newHerd(1, false, false)
	measure("control", 1, one, one)
	measure("flags-of-the-environment", agents, newHerd(agents, false, false), one)
	measure("flags-apart", agents, newHerd(agents, true, false), one)
	measure("active", agents, newHerd(agents, true, true), one)
	load := herdGuests(b)
	guest := load("-DAGENTS=1")
	measure("guest-control", 1, guest, guest)
	measure("guest", agents, load(fmt.Sprint("-DAGENTS=", agents)), guest)
	measure("guest-active", agents, load(fmt.Sprint("-DAGENTS=", agents), "-DTURNS"), guest)
}

// beside has two rollouts make blocks in turns, and reports the ratio of the first's rows per second to the second's.
func beside(b *testing.B, several, single *flock) {
	var severals, singles []float64
	for b.Loop() {
		severals, singles = append(severals, several.slice(b)), append(singles, single.slice(b))
	}
	// The best of each: what else the machine does only ever adds.
	b.ReportMetric(slices.Min(severals), "several-ns/row")
	b.ReportMetric(slices.Min(singles), "single-ns/row")
	b.ReportMetric(slices.Min(singles)/slices.Min(severals), "rows-of-single")
}

// herdGuests returns what builds and loads the herd in C with further flags for its compiler.
func herdGuests(b *testing.B) func(flags ...string) env.Plugin {
	b.Helper()
	runtime, err := wasm.New(wasm.Options{CacheDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := runtime.Close(); err != nil {
			b.Error(err)
		}
	})
	guests := plugins.Guests()
	of := guests[slices.IndexFunc(guests, func(g plugins.Guest) bool { return g.Env == "chase" })]
	return func(flags ...string) env.Plugin {
		g := plugins.Guest{Module: "testdata/herd/herd.wasm", Env: "herd", Language: of.Language, Flags: flags}
		file := filepath.Join(b.TempDir(), "herd.wasm")
		if err := g.Build(file); err != nil {
			b.Fatal(err)
		}
		source, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		p, err := runtime.Load(b.Context(), file, source, env.Source{Name: "herd"})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := p.Close(); err != nil {
				b.Error(err)
			}
		})
		return p
	}
}

// flock is a rollout that is measured.
type flock struct {
	*rig
	actor        policy.Actor
	blocks, rows int
}

const flockHorizon = 128

// act answers a request as inference does.
func (f *flock) act(m *hostabi.Message) error {
	q := trajectory.ActRequestOf(m)
	tr, err := trajectory.Borrowed(f.Host.Arenas, q.Block)
	if err != nil {
		return err
	}
	r := policy.Request{Obs: tr.Rows(nil, trajectory.Obs, q.T), Value: tr.Row(trajectory.Value, q.T).Float32(), Seed: 1, Step: q.Step}
	if !q.ValueOnly {
		r.Action, r.LogProb = tr.Rows(nil, trajectory.Action, q.T), tr.Row(trajectory.LogProb, q.T).Float32()
	}
	if err := f.actor.Act([]policy.Request{r}); err != nil {
		return err
	}
	return f.answers.Emit(hostabi.Message{T: m.T, Split: m.Split, Inline: m.Inline, Handle: m.Handle, PolicyVersion: 3})
}

func newFlock(b *testing.B, p env.Plugin, envs int) *flock {
	f := &flock{rig: newRig(b, rigOptions{plugin: p, config: func(c *config) { c.Envs, c.Splits, c.Horizon = envs, 1, flockHorizon }})}
	n := policy.MLP{Obs: herdObs, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh, HiddenGain: 1.414}.Network()
	var err error
	if f.actor, err = policy.NewActor(cpu.New(), &n, 1024); err != nil {
		b.Fatal(err)
	}
	if err := f.actor.Load(policy.Weights{Params: policy.Init(&n, 1)}); err != nil {
		b.Fatal(err)
	}
	f.silent = true
	f.From("obs_ready", func(m *hostabi.Message) {
		if err := f.act(m); err != nil {
			b.Fatal(err)
		}
	})
	f.eachBlock(b, func(_ *hostabi.Message, tr trajectory.Trajectory) {
		f.blocks++
		f.rows += int(tr.Meta().ValidRows)
	})
	return f
}

// slice makes some blocks and returns CPU nanoseconds per row.
func (f *flock) slice(b *testing.B) float64 {
	b.Helper()
	until, rows := f.blocks+20, f.rows
	f.rig.blocks, f.asked, f.episodes = f.rig.blocks[:0], f.asked[:0], f.episodes[:0]
	before := cpuTime(b)
	f.MustRun(func() bool { return f.blocks >= until })
	return float64((cpuTime(b) - before).Nanoseconds()) / float64(f.rows-rows)
}

// cpuTime is the processor time that the process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
