package wasm

import (
	"os"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/internal/testkit"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// testCache is the compile cache of all tests but those about the cache.
var testCache string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		serve(os.Args[1], os.Args[2:])
	}
	dir, err := os.MkdirTemp("", "rlhost-wasm")
	if err != nil {
		panic(err)
	}
	testCache = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// must ends the test on an error.
func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// opened returns an Env with a bound block of four steps.
func opened(t testing.TB, p *Plugin, o env.Options) (*Env, env.Block) {
	t.Helper()
	e, b := newEnv(t, p, o), blocks(t, p.Spec(), trajectory.Shape{Steps: 4, Envs: o.Envs}, 1)[0]
	must(t, e.Bind(b))
	return e, b
}

func newRuntime(t testing.TB) *Runtime {
	t.Helper()
	r, err := New(Options{CacheDir: testCache})
	must(t, err)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func load(t testing.TB, r *Runtime, path string, source []byte, c env.Source) *Plugin {
	t.Helper()
	p, err := r.Load(t.Context(), path, source, c)
	must(t, err)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.(*Plugin)
}

// cartPole is the C guest of the examples.
const (
	examples = "../../examples/plugins/"
	cartPole = examples + "cartpole-c/cartpole.wasm"
)

func readGuest(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}

func newEnv(t testing.TB, p *Plugin, o env.Options) *Env {
	t.Helper()
	if o.Name == "" {
		o.Name = "rollout[0]"
	}
	if o.Autoreset == 0 {
		spec := p.Spec()
		o.Autoreset = spec.PickAutoreset()
	}
	e, err := p.NewEnv(o)
	must(t, err)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e.(*Env)
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

// blocks returns n blocks in one sealed segment.
func blocks(t testing.TB, spec hostabi.EnvSpec, shape trajectory.Shape, n int) []env.Block {
	t.Helper()
	schema, err := trajectory.NewSchema(spec, shape)
	must(t, err)
	seg, err := shm.Create("test", n*schema.Bytes)
	must(t, err)
	t.Cleanup(func() { seg.Close() })
	var all []env.Block
	for k := range n {
		at := k * schema.Bytes
		all = append(all, env.Block{
			Trajectory: trajectory.Trajectory{Schema: schema, Mem: seg.Bytes()[at:][:schema.Bytes:schema.Bytes]},
			Index:      uint32(k), FD: seg.FD(), Offset: int64(at)})
	}
	return all
}

// words32 reads eight numbers.
func words32(b []byte) (w [8]uint32) {
	for k := range w {
		w[k] = uint32(b[4*k]) | uint32(b[4*k+1])<<8 | uint32(b[4*k+2])<<16 | uint32(b[4*k+3])<<24
	}
	return w
}

func seeds(n int) []uint64 {
	s := make([]uint64, n)
	for k := range s {
		s[k] = env.Seed(1, k)
	}
	return s
}

// play steps through whole blocks with actions from a fixed stream and returns every byte that the guest wrote.
func play(t testing.TB, e *Env, all []env.Block, rounds int) []byte {
	t.Helper()
	var log []byte
	x := uint64(7)
	for range rounds {
		for _, b := range all {
			must(t, e.Bind(b))
			clear(b.Mem) // what nobody writes must not differ between runs
			act := b.Int32(trajectory.Action)
			for k := range act {
				x = x*6364136223846793005 + 1442695040888963407
				act[k] = int32(x >> 63)
			}
			for step := range b.Schema.Shape.Steps {
				e.pace = pace{} // a busy machine cuts steps into more calls, which burn more fuel
				must(t, e.Step(step))
			}
			log = append(log, b.Mem[:b.Schema.GuestBytes]...)
		}
	}
	return log
}

func TestEnv_StepsIntoBlock(t *testing.T) {
	p := load(t, newRuntime(t), cartPole, nil, env.Source{})
	spec := p.Spec()
	t.Logf("%s %+v", spec.Name, spec)
	e := newEnv(t, p, env.Options{Envs: 64, Autoreset: hostabi.SameStep})
	all := blocks(t, spec, trajectory.Shape{Steps: 32, Envs: 64}, 3)
	must(t, e.Bind(all[0]))
	must(t, e.Reset(0, nil, seeds(64)))
	play(t, e, all, 2)
	for _, b := range all {
		if got := b.Float32(trajectory.Reward)[100]; got != 1 {
			t.Errorf("reward = %v, want 1", got)
		}
	}
	t.Log("fuel", e.FuelUsed())
}

// exampleGuests returns the modules of all example guests, or of one environment's, by name.
func exampleGuests(t testing.TB, env string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for name, file := range testkit.Guests(t, env, testCache) {
		all[name] = readGuest(t, file)
	}
	return all
}

// FuelUsed returns how much the guest has burned since it was made or renewed.
func (e *Env) FuelUsed() uint64 { return e.inst.FuelUsed() }
