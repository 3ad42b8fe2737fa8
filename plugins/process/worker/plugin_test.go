package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/plugins/wasm/module"
	sdkprocess "github.com/rlhost/rlhost/sdk/process"
)

// playEnv is the role of a worker of environments: modules by the path of their file, scripted ones by name.
func playEnv(cache string) {
	sdkprocess.Serve(sdkprocess.Plugin{Load: func(ctx context.Context, s env.Source) (env.Plugin, error) {
		if script, ok := envScripts()[s.Use]; ok {
			return plugintest.New(script), nil
		}
		if how, ok := strings.CutPrefix(s.Use, "nasty:"); ok {
			return nasty{plugintest.New(plugintest.Script{}), how}, nil
		}
		if s.Use == "later@1" {
			return later{plugintest.New(plugintest.Script{})}, nil
		}
		r, err := wasm.New(wasm.Options{CacheDir: cache})
		if err != nil {
			return nil, err
		}
		return r.Load(ctx, s.Use, nil, s)
	}})
}

// later is a plugin whose environments are described for an ABI that this host does not have.
type later struct{ *plugintest.Plugin }

func (p later) Spec() hostabi.EnvSpec {
	s := p.Plugin.Spec()
	s.ABI = hostabi.Version{Major: hostabi.EnvABI.Major + 1}
	return s
}

// A program whose environments are of a later ABI hears that this rlhost is too old, and never that it is wrong: in Go by its major
// version, in Python by its version or by what it needs.
func TestLoad_AProgramOfALaterABIIsToldThatTheHostIsTooOld(t *testing.T) {
	python := gymnasium(t)
	lateIn := func(change string) spawn.Program {
		python.Args = []string{"-c", "from rlhost import spec\n" + change + "\nfrom rlhost.gymnasium import Worker\nfrom rlhost.serving import serve\nserve(envs=Worker())"}
		return python
	}
	needs := "pack = spec.EnvSpec.pack\nspec.EnvSpec.pack = lambda s: (d := pack(s))[:16] + (1 << 40).to_bytes(8, 'little') + d[24:]"
	for name, c := range map[string]struct {
		program   spawn.Program
		use, says string
	}{
		"Go":                         {spawntest.Self(t, "env", cacheFolder(t)), "later@1", "it is of ABI 2, this host speaks 1.1"},
		"Python, its version":        {lateIn("spec._ABI = (2, 0)"), "CartPole-v1", "it is of ABI 2, this host speaks 1.1"},
		"Python, something it needs": {lateIn(needs), "CartPole-v1", "it needs feature 40"},
	} {
		r, _ := spawntest.NewRuntime(t, spawn.Options{})
		_, err := Load(t.Context(), r, c.program, Options{Source: env.Source{Name: "late", Use: c.use}})
		var e *spawn.Error
		if !errors.As(err, &e) || e.Code != codeFuture || !strings.Contains(e.Help, "update rlhost, or describe it for ABI 1.1") || !strings.Contains(e.Error(), c.says) {
			t.Errorf("%s: %v, want %s that says %q", name, err, codeFuture, c.says)
		}
	}
}

// at gives a cue in one call of Step of one environment, before the first restart.
func at(env int, call uint64, cue plugintest.Cue) plugintest.Script {
	return plugintest.Script{Cue: func(a plugintest.At) plugintest.Cue {
		if a.Env == env && a.Calls == call && a.Renewals == 0 {
			return cue
		}
		return plugintest.Nothing
	}}
}

// envScripts are environments of the test's own.
func envScripts() map[string]plugintest.Script {
	sleepy := plugintest.Script{Cue: func(a plugintest.At) plugintest.Cue {
		if a.Env == 3 && a.Calls == 3 && !a.Reset {
			time.Sleep(time.Hour)
		}
		return plugintest.Nothing
	}}
	return map[string]plugintest.Script{
		"scripted@1": {Legal: func(plugintest.At, int) bool { return true }, Length: func(env, episode int) int { return 3 + (env+episode)%5 }},
		"traps@1":    at(4, 7, plugintest.Trap),
		"fails@1":    at(4, 7, plugintest.ErrorStatus),
		"resets@1": {Cue: func(a plugintest.At) plugintest.Cue {
			if a.Reset && a.Env == 5 {
				return plugintest.ErrorStatus
			}
			return plugintest.Nothing
		}},
		"hangs@1": sleepy,
		"slow@1": {Cue: func(plugintest.At) plugintest.Cue {
			time.Sleep(2 * long)
			return plugintest.Nothing
		}},
		"lazy@1": {Cue: func(a plugintest.At) plugintest.Cue {
			if a.Calls <= 40 && !a.Reset {
				time.Sleep(2 * muchLonger)
			}
			return plugintest.Nothing
		}},
		"tells@1": {Metric: func(a plugintest.At) (string, float64) { return fmt.Sprint("of_env_", a.Env), float64(a.Step) }},
		"empty@1": {Length: func(int, int) int { return 1 << 30 }},
		"plain@1": {Flaws: plugintest.Flaws{NoSnapshot: true}},
	}
}

// envCache keeps compiled modules for all workers of a test run.
var envCache = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "rlhost-process-test") })

func cacheFolder(t testing.TB) string {
	t.Helper()
	dir, err := envCache()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// loadIn loads an environment in worker processes.
func loadIn(t testing.TB, workers int, source env.Source) *plugin {
	t.Helper()
	return loadFrom(t, spawntest.Self(t, "env", cacheFolder(t)), workers, source)
}

// loadFrom loads an environment in worker processes of a program.
func loadFrom(t testing.TB, program spawn.Program, workers int, source env.Source) *plugin {
	t.Helper()
	r, _ := spawntest.NewRuntime(t, spawn.Options{})
	if source.Name == "" {
		source.Name = "test"
	}
	p, err := Load(t.Context(), r, program, Options{Source: source, Workers: workers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p.(*plugin)
}

// loadHere loads a module in this process.
func loadHere(t testing.TB, use string) env.Plugin {
	t.Helper()
	r, err := wasm.New(wasm.Options{CacheDir: cacheFolder(t)})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Load(t.Context(), use, nil, env.Source{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(p.Close(), r.Close()); err != nil {
			t.Error(err)
		}
	})
	return p
}

const examples = "../../../examples/plugins/"

func cartPole(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs(examples + "cartpole-c/cartpole.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEnv_KeepsThePromisesInAProcess(t *testing.T) {
	uses := testkit.Guests(t, "corridor", cacheFolder(t))
	uses["scripted"] = "scripted@1"
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			plugintest.TestEnv(t, loadIn(t, 2, env.Source{Use: use}), plugintest.Options{Steps: 120})
		})
	}
}

// stage is a batch that is played with its own actions.
type stage struct {
	*env.Driver
	envs  int
	steps int
}

func newStage(t testing.TB, p env.Plugin, envs int) *stage {
	t.Helper()
	s, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "stage", Envs: envs, Seed: 3}, Rows: 8})
	if err != nil {
		t.Fatal(err)
	}
	x := &stage{Driver: s, envs: envs}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.Reset(nil, x.seeds()); err != nil {
		t.Fatal(err)
	}
	return x
}

func (s *stage) seeds() []uint64 {
	seeds := make([]uint64, s.envs)
	for i := range seeds {
		seeds[i] = env.Seed(9, i)
	}
	return seeds
}

// next makes a step with actions that depend on the count of steps alone.
func (s *stage) next() error {
	s.steps++
	for i, action := 0, s.Action(); i < len(action); i++ {
		action[i] = int32((s.steps + i) & 1)
	}
	_, err := s.Step()
	return err
}

// play makes n steps.
func (s *stage) play(t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := s.next(); err != nil {
			t.Fatal(err)
		}
	}
}

// same reports whether two batches of environments have written the same in their newest step.
func same(a, b *stage) bool {
	return slices.Equal(a.Obs().Data, b.Obs().Data) && slices.Equal(a.Reward(), b.Reward()) &&
		slices.Equal(a.Terminated(), b.Terminated()) && slices.Equal(a.Truncated(), b.Truncated()) &&
		slices.Equal(a.FinalObs().Data, b.FinalObs().Data)
}

// idle makes a step with action 0 everywhere.
func idle(s *env.Driver) error {
	clear(s.Action())
	_, err := s.Step()
	return err
}

// A module does the same in a process as in the host, bit for bit, whatever else is in the block.
func TestIsolation_ChangesNoTrajectory(t *testing.T) {
	for name, use := range testkit.Guests(t, "corridor", cacheFolder(t)) {
		inHost := loadHere(t, use)
		for _, workers := range []int{1, 3} {
			isolated := loadIn(t, workers, env.Source{Use: use})
			if isolated.Hash() != inHost.Hash() {
				t.Errorf("%s: hash %s in a process, %s in the host", name, isolated.Hash(), inHost.Hash())
			}
			a, b := newStage(t, inHost, 7), newStage(t, isolated, 7)
			for step := range 400 {
				if err := errors.Join(a.next(), b.next()); err != nil {
					t.Fatal(err)
				}
				if !same(a, b) {
					t.Fatalf("%s in %d processes: step %d differs", name, workers, step)
				}
			}
		}
	}
}

// A snapshot of a module in one process is one of the module in the host, and the other way round.
func TestIsolation_SnapshotsGoBothWays(t *testing.T) {
	inHost, isolated := loadHere(t, cartPole(t)), loadIn(t, 1, env.Source{Use: cartPole(t)})
	for _, order := range [][2]env.Plugin{{inHost, isolated}, {isolated, inHost}} {
		from, to := newStage(t, order[0], 4), newStage(t, order[1], 4)
		from.play(t, 20)
		snapshot, err := from.Env.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(to.Env.Restore(snapshot), to.Bind()); err != nil {
			t.Fatal(err)
		}
		to.steps = from.steps
		for range 20 {
			if err := errors.Join(from.next(), to.next()); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(from.Obs().Data, to.Obs().Data) {
				t.Fatal("the restored batch observes something else")
			}
		}
	}
}

func TestEnvFaults_TravelWithKindEnvironmentAndText(t *testing.T) {
	for use, want := range map[string]string{
		"traps@1":  "stage env 4: trap in rl_step at step 7: trap on cue (traps@1)",
		"fails@1":  "stage env 4: status in rl_step at step 7: error on cue (fails@1)",
		"resets@1": "stage env 5: status in rl_reset at step 0: error on cue (resets@1)",
	} {
		for _, workers := range []int{1, 2} {
			p := loadIn(t, workers, env.Source{Use: use})
			s, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "stage", Envs: 6}, Rows: 8})
			if err != nil {
				t.Fatal(err)
			}
			err = s.Reset(nil, nil)
			for range 7 {
				if err == nil {
					err = idle(s)
				}
			}
			var f *env.Fault
			if !errors.As(err, &f) || err.Error() != want {
				t.Fatalf("%d processes: got %v, want %s", workers, err, want)
			}
			if f.Poisons() {
				if err := idle(s); !errors.Is(err, env.ErrPoisoned) {
					t.Errorf("a step after the fault: %v, want ErrPoisoned", err)
				}
			}
			if err := errors.Join(s.Env.Renew(), s.Bind()); err != nil {
				t.Errorf("after the fault: %v", err)
			}
			if use == "traps@1" {
				if err := s.Reset(nil, nil); err != nil {
					t.Error(err)
				}
				for range 20 {
					if err := idle(s); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestEnvMetrics_ReachTheHost(t *testing.T) {
	p := loadIn(t, 2, env.Source{Use: "tells@1"})
	got, envs := map[string]float64{}, map[string]int{}
	s, err := env.NewDriver(p, env.DriverOptions{Options: env.Options{Name: "stage", Envs: 4,
		Metric: func(m env.Metric) { got[m.Name], envs[m.Name] = m.Value, m.Env }}, Rows: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Reset(nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := idle(s); err != nil { // names come another way than values, which wait for them
		t.Fatal(err)
	}
	if v, ok := got["of_env_3"]; len(got) != 4 || !ok || v < 0 || v > 10 || envs["of_env_0"] != 0 || envs["of_env_3"] != 3 {
		t.Errorf("metrics %v of %v, want of_env_0 to of_env_3 of these, with steps of their episodes", got, envs)
	}
}

func TestLoadEnv_SaysWhatIsWrong(t *testing.T) {
	r, _ := spawntest.NewRuntime(t, spawn.Options{})
	_, err := Load(t.Context(), r, spawntest.Self(t, "env", cacheFolder(t)), Options{Source: env.Source{Use: "/no/such.wasm"}})
	var e *spawn.Error
	if !errors.As(err, &e) || e.Code != module.CodeMissing || !strings.Contains(err.Error(), "/no/such.wasm: does not exist") {
		t.Errorf("a missing module: %v", err)
	}
	_, err = Load(t.Context(), r, spawntest.Self(t, "env", cacheFolder(t)), Options{
		Source: env.Source{Use: cartPole(t), Args: map[string]string{"max_stps": "5", "max_steps": "many"}}})
	var keys []string
	for _, e := range table.All(err) {
		keys = append(keys, e.Code+" "+e.Sentence())
	}
	if want := []string{"E003 `args.max_steps` is \"many\", want a whole number from 1 to 2147483647", "E002 `args.max_stps` is not an argument of this environment"}; !slices.Equal(keys, want) {
		t.Errorf("arguments that the environment does not take: %q (%v), want %q", keys, err, want)
	}
	_, err = Load(t.Context(), r, spawntest.Self(t, "env", cacheFolder(t)), Options{Source: env.Source{Use: cartPole(t), Threads: 2}})
	if all := table.All(err); len(all) != 1 || !strings.HasPrefix(all[0].Sentence(), "`threads` is 2, but ") {
		t.Errorf("threads of a program that has none: %v", err)
	}
	if _, err := Load(t.Context(), r, spawntest.Self(t, "plain"), Options{Source: env.Source{Use: "x"}}); err == nil {
		t.Error("a program that works no environments is taken")
	}
}

func TestBind_RefusesWhatNoOtherProcessCanSee(t *testing.T) {
	p := loadIn(t, 1, env.Source{Use: "scripted@1"})
	e, err := p.NewEnv(env.Options{Name: "x", Envs: 2, Autoreset: hostabi.SameStep})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	schema, err := trajectory.NewSchema(p.Spec(), trajectory.Shape{Steps: 2, Envs: 2})
	if err != nil {
		t.Fatal(err)
	}
	b := env.Block{Trajectory: trajectory.Trajectory{Schema: schema, Mem: make([]byte, schema.Bytes)}, FD: -1}
	if err := e.Bind(b); !errors.Is(err, env.ErrUnsupported) || !strings.Contains(err.Error(), "ordinary memory") {
		t.Errorf("Bind of a heap block: %v", err)
	}
}
