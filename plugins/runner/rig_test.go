package runner

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
)

// statNames are the names of a learner's numbers.
var statNames = []string{"global_step", "lag/mean", "lag/max", "losses/approx_kl", "losses/clipfrac", "losses/entropy", "charts/learning_rate"}

// rig is a runner on its own loop, wired as in a pipeline, with the time of a synctest bubble.
type rig struct {
	t        *testing.T
	r        *Runner
	h        *component.Host
	loop     *loop.Loop
	stats    *arena.Arena
	episodes *bus.Signal
	learner  *bus.Signal
	mu       sync.Mutex
	reasons  []component.StopReason // guarded by mu
	out      testkit.Buffer
	warnings testkit.Buffer
	ran      chan error
	cancel   context.CancelFunc
}

// setup is the configuration of a rig.
type setup struct {
	run    component.Run
	output Output
	config func(c *config)
	envs   int
	from   *component.State // to restore
	early  uint64           // env steps that are made before the runner's loop runs
	// With several policies: the policy of each sender, and in how many environments each acts.
	policies map[uint16]string
	acting   map[string]int
}

// start makes a runner and runs its loop.
func start(t *testing.T, s setup) *rig {
	t.Helper()
	rig := &rig{t: t, loop: loop.New("runner"), ran: make(chan error, 1)}
	if s.output.Out == nil {
		s.output.Out = &rig.out
	}
	rig.r = New(s.output)().(*Runner)
	if err := rig.r.Configure(func(into any) error {
		if s.config != nil {
			s.config(into.(*config))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	rig.h = &component.Host{
		Name: "runner", Count: 1, Run: &s.run, Receiver: rig.loop.NewReceiver("runner"), Arenas: arena.NewSet(),
		Stats: stat.NewRegistry(), Log: slog.New(slog.NewTextHandler(&rig.warnings, nil)),
		Peers: func(string) int { return 1 },
		Stop: func(reason component.StopReason) {
			rig.mu.Lock()
			defer rig.mu.Unlock()
			rig.reasons = append(rig.reasons, reason)
		},
	}
	if s.policies != nil {
		rig.h.PolicyOf = func(sender uint16) (string, bool) {
			name, ok := s.policies[sender]
			return name, ok
		}
		rig.h.ActsIn = func(policy string) int { return s.acting[policy] }
		rig.h.Tables = func() component.Tables {
			declared := map[string]component.PolicyTable{}
			for name := range s.acting {
				declared[name] = component.PolicyTable{}
			}
			return component.Tables{Policies: declared}
		}
	}
	rig.h.Stats.Gauge("rollout/envs").Set(float64(s.envs))
	rig.h.Bind(rig.r.Manifest())
	if err := rig.r.Start(rig.h); err != nil {
		t.Fatal(err)
	}
	if s.from != nil {
		if err := rig.r.Restore(*s.from); err != nil {
			t.Fatal(err)
		}
	}
	rig.h.Stats.Counter("rollout/env_steps").Add(s.early)
	rig.connect()
	ctx, cancel := context.WithCancel(context.Background())
	rig.cancel = cancel
	go func() { rig.ran <- rig.loop.Run(ctx) }()
	synctest.Wait()
	return rig
}

// watch runs fn with a runner, in a synctest bubble.
func watch(t *testing.T, s setup, fn func(t *testing.T, g *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := start(t, s)
		defer g.end()
		fn(t, g)
	})
}

// wantStops compares the reasons with which the runner asked the run to end.
func (g *rig) wantStops(want ...component.StopReason) {
	g.t.Helper()
	if got := g.stops(); !slices.Equal(got, want) {
		g.t.Errorf("stopped with %v, want %v", got, want)
	}
}

// wantCount compares a counter.
func (g *rig) wantCount(name string, want uint64) {
	g.t.Helper()
	if got := g.h.Stats.Counter(name).Value(); got != want {
		g.t.Errorf("%s is %d, want %d", name, got, want)
	}
}

// stops returns the reasons with which the runner asked the run to end.
func (g *rig) stops() []component.StopReason {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.reasons)
}

func (g *rig) connect() {
	g.t.Helper()
	var err error
	g.stats, err = g.h.Arenas.Add(arena.Config{Name: "stats", Blocks: 4, BlockBytes: 8 * len(statNames), Schema: trajectory.Names(statNames)})
	if err != nil {
		g.t.Fatal(err)
	}
	g.episodes = bus.NewSignal(nil, "rollout.episodes", "episode", g.h.Arenas)
	g.learner = bus.NewSignal(nil, "learner.stats", "learner_stats", g.h.Arenas)
	for signal, slot := range map[*bus.Signal]string{g.episodes: "on_episodes", g.learner: "on_stats"} {
		o := bus.Options{Mode: bus.All, Depth: 4096, Overflow: bus.Block}
		if _, err := bus.Connect(signal, g.h.BoundSlot(slot), o); err != nil {
			g.t.Fatal(err)
		}
	}
}

// end stops everything, as the pipeline does.
func (g *rig) end() {
	g.t.Helper()
	g.loop.Stop()
	if err := <-g.ran; err != nil {
		g.t.Error(err)
	}
	g.cancel()
	for what, err := range map[string]error{"runner": g.r.Stop(), "loop": g.loop.Close(), "arena": g.h.Arenas.Close()} {
		if err != nil {
			g.t.Errorf("stop %s: %v", what, err)
		}
	}
}

// episode lets an environment end an episode.
func (g *rig) episode(env int, ret float32, length int) {
	g.t.Helper()
	g.h.Stats.Counter("rollout/env_steps").Add(uint64(length))
	e := trajectory.Episode{Return: ret, Length: uint32(length), Env: uint32(env), Terminated: length < 500}
	if err := g.episodes.Emit(e.Message()); err != nil {
		g.t.Fatal(err)
	}
}

// played lets a component report an episode.
func (g *rig) played(sender uint16, e trajectory.Episode) {
	g.t.Helper()
	m := e.Message()
	m.Sender = sender
	if err := g.episodes.Emit(m); err != nil {
		g.t.Fatal(err)
	}
	synctest.Wait()
}

// update lets the learner report.
func (g *rig) update(values ...float64) { g.reported(0, values...) }

// reported lets a component report.
func (g *rig) reported(sender uint16, values ...float64) {
	g.t.Helper()
	plugintest.Give(g.t, g.learner, hostabi.Message{PolicyVersion: uint64(values[0] / 2048), Sender: sender}, g.stats, func(block []byte) {
		for i := range statNames {
			v := math.NaN()
			if i < len(values) {
				v = values[i]
			}
			binary.LittleEndian.PutUint64(block[8*i:], math.Float64bits(v))
		}
	})
	synctest.Wait()
}

// snapshot takes a snapshot and passes it through JSON, as a checkpoint does.
func (g *rig) snapshot() component.State {
	g.t.Helper()
	synctest.Wait()
	state, err := g.r.Snapshot()
	if err != nil {
		g.t.Fatal(err)
	}
	if state.RawMeta, err = json.Marshal(state.Meta); err != nil {
		g.t.Fatal(err)
	}
	state.Meta = nil
	return state
}

// read returns a file of the run, without the numbers that depend on the time.
func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// lines decodes a file of JSON lines.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, object)
	}
	return all
}
