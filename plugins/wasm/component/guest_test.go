package component

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// shaping is a component that shapes the rewards of a block on loan to the test.
type shaping struct {
	*plugintest.Rig
	g   *component
	m   hostabi.Message
	tr  trajectory.Trajectory
	got []hostabi.Message
}

func shape(t testing.TB, s Source, table map[string]any) *shaping {
	t.Helper()
	x := &shaping{}
	x.Rig, x.g = started(t, s, plugintest.RigOptions{Grants: granted()}, table)
	loan, err := newBlocks(t, x.Host.Arenas, 1, trajectory.Shape{Steps: 2, Envs: 2, Granted: "shaped_reward"}).arena.Loan()
	must(t, err)
	t.Cleanup(func() { must(t, loan.Abort()) })
	x.tr, err = trajectory.Borrowed(x.Host.Arenas, loan.Handle())
	must(t, err)
	copy(x.tr.Float32(trajectory.Reward), []float32{1, -10, 0, 3})
	x.m = trajectory.BlockRequest{Block: loan.Handle(), Split: 1, Step: 5, FirstEnv: 6}.Message()
	x.m.Sender = 3
	x.From("shaped", func(m *hostabi.Message) { x.got = append(x.got, *m) })
	must(t, x.ToOnLoan("on_rewards").Emit(x.m))
	x.MustSettle()
	return x
}

func TestShaper_IsTheSameInAllLanguages(t *testing.T) {
	for name, path := range testkit.Guests(t, "shaper", t.TempDir()) {
		t.Run(name, func(t *testing.T) {
			x := shape(t, source(path, "metric"), map[string]any{"scale": 0.5, "shift": 0.25, "clip": 1.0})
			if len(x.got) != 1 || trajectory.BlockRequestOf(&x.got[0]) != trajectory.BlockRequestOf(&x.m) || x.got[0].Sender != x.m.Sender {
				t.Errorf("answered with %+v, want %+v", x.got, x.m)
			}
			if got, want := x.tr.Float32(trajectory.ShapedReward), []float32{0.75, -1, 0.25, 1}; !slices.Equal(got, want) {
				t.Errorf("shaped rewards %v, want %v", got, want)
			}
			if got, want := x.tr.Float32(trajectory.Reward), []float32{1, -10, 0, 3}; !slices.Equal(got, want) || x.g.copied.Value() != 0 {
				t.Errorf("rewards %v, want %v; %d bytes copied", got, want, x.g.copied.Value())
			}
		})
	}
}

func TestShaper_NeedsTheGrantOfItsWire(t *testing.T) {
	err := plugintest.StartError(t, made(t, source(example("shaper"))), plugintest.RigOptions{Name: "shaper"}, plugintest.DecodeTable(nil))
	if err == nil || !strings.Contains(err.Error(), "may not write shaped_reward: no wire grants it") {
		t.Errorf("Start = %v", err)
	}
}

func TestConfigure_NamesTheKey(t *testing.T) {
	for _, c := range []struct {
		table map[string]any
		want  string
	}{
		{map[string]any{"clip": -1.5}, "`clip` want 0 (none) or more"},
		{map[string]any{"scale": "x"}, "`scale` want a number"},
		{map[string]any{"slope": 1.0}, "`slope` is not known"},
	} {
		err := made(t, source(example("shaper"))).Configure(plugintest.DecodeTable(c.table))
		var e *core.ConfigError
		if !errors.As(err, &e) || e.Error() != c.want {
			t.Errorf("%v: %v, want %s", c.table, err, c.want)
		}
	}
}

func TestManifest_IsTheModules(t *testing.T) {
	g := made(t, source(example("episodes"), "log", "metric"))
	must(t, g.Configure(plugintest.DecodeTable(nil)))
	m := g.Manifest()
	if len(m.Signals) != 0 || len(m.Slots) != 1 || m.Slots[0] != (core.Port{Name: "on_episodes", Payload: "episode", Doc: "episodes that have ended"}) {
		t.Errorf("manifest %+v", m)
	}
}

func TestEpisodes_CountsInAllLanguages(t *testing.T) {
	for name, path := range testkit.Guests(t, "episodes", t.TempDir()) {
		t.Run(name, func(t *testing.T) {
			r, _ := started(t, source(path, "log", "metric"), plugintest.RigOptions{}, map[string]any{"every": int64(2)})
			in := r.To("on_episodes")
			for i, length := range []uint32{5, 9, 3} {
				must(t, in.Emit(trajectory.Episode{Return: 1, Length: length, Env: uint32(i)}.Message()))
			}
			r.MustSettle()
			if n := r.Host.Stats.Counter("episodes/count").Value(); n != 3 {
				t.Errorf("%d episodes counted, want 3", n)
			}
			if n := r.Host.Stats.Gauge("episodes/longest").Value(); n != 9 {
				t.Errorf("the longest has %v, want 9", n)
			}
			if d := r.Host.Stats.Histogram("episodes/length").Snapshot(); d.Count != 3 || d.Mean() < 5 || d.Mean() > 6 {
				t.Errorf("lengths: %d of mean %v", d.Count, d.Mean())
			}
			var e *core.ConfigError
			err := made(t, source(path, "log", "metric")).Configure(plugintest.DecodeTable(map[string]any{"every": int64(0)}))
			if !errors.As(err, &e) || e.Error() != "`every` want 1 or more" {
				t.Errorf("every = 0: %v", err)
			}
		})
	}
}

// A component in Go that logs where it may runs without the grant, and is heard with it.
func TestTryLog_NeedsNoGrantInGo(t *testing.T) {
	testkit.Reads(t, "testdata/trylog/main.go", "../../../sdk/component/module/*.go")
	module := filepath.Join(t.TempDir(), "trylog.wasm")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", module, "./testdata/trylog")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	for _, grants := range [][]string{nil, {"log"}} {
		r, _ := started(t, source(module, grants...), plugintest.RigOptions{Count: 2}, nil)
		if heard := strings.Contains(r.Log.String(), `a component begins\" of=2`); heard != (grants != nil) {
			t.Errorf("with the grants %v it is heard: %v\n%s", grants, heard, r.Log.String())
		}
	}
}

// An instance's state continues in the next one, its table does not.
func TestSnapshot_IsOfTheNamedMember(t *testing.T) {
	s := source(example("episodes"), "log", "metric")
	r, g := started(t, s, plugintest.RigOptions{}, map[string]any{"every": int64(5)})
	must(t, r.To("on_episodes").Emit(trajectory.Episode{Length: 8}.Message()))
	r.MustSettle()
	state, err := g.Snapshot()
	must(t, err)
	next, h := started(t, s, plugintest.RigOptions{}, map[string]any{"every": int64(1)})
	must(t, h.Restore(state))
	in := next.To("on_episodes")
	must(t, in.Emit(trajectory.Episode{Length: 7}.Message()))
	next.MustSettle()
	if n := next.Host.Stats.Gauge("episodes/longest").Value(); n != 8 {
		t.Errorf("after a shorter episode the longest has %v, want 8", n)
	}
	again, err := h.Snapshot()
	must(t, err)
	if a, b := state.Blobs[core.OpaqueBlob], again.Blobs[core.OpaqueBlob]; len(a) != len(b) || a[0] != 1 || b[0] != 2 {
		t.Errorf("states %v and %v, want one more episode in the second", a, b)
	}
	shaper, _ := started(t, source(example("shaper")), plugintest.RigOptions{Grants: granted()}, nil)
	if err := shaper.Component.Restore(state); err == nil {
		t.Error("a module takes the state of another one")
	}
}

// The example in Go continues from the state of the one in C, and the other way round.
func TestSnapshot_IsReadByTheOtherLanguage(t *testing.T) {
	all := testkit.Guests(t, "episodes", t.TempDir())
	for from, a := range all {
		for to, b := range all {
			r, g := started(t, source(a, "log", "metric"), plugintest.RigOptions{}, nil)
			must(t, r.To("on_episodes").Emit(trajectory.Episode{Length: 8}.Message()))
			r.MustSettle()
			state, err := g.Snapshot()
			must(t, err)
			_, h := started(t, source(b, "log", "metric"), plugintest.RigOptions{}, nil)
			must(t, h.Restore(state))
			again, err := h.Snapshot()
			must(t, err)
			if !slices.Equal(state.Blobs[core.OpaqueBlob], again.Blobs[core.OpaqueBlob]) {
				t.Errorf("%s to %s: %v becomes %v", from, to, state.Blobs, again.Blobs)
			}
		}
	}
}

func TestSource_MustHaveItsHash(t *testing.T) {
	s := source(example("shaper"))
	s.SHA256 = strings.Repeat("0", 64)
	_, err := modules(t).Component(s)
	var e *table.Error
	if !errors.As(err, &e) || e.Code != CodeHash {
		t.Errorf("Component = %v, want %s", err, CodeHash)
	}
}

// An environment is no component, and says so.
func TestComponent_RefusesAnEnvironment(t *testing.T) {
	_, err := modules(t).Component(source("../../../examples/plugins/cartpole-c/cartpole.wasm"))
	if err == nil || !strings.Contains(err.Error(), "is a module of environments, not of components") {
		t.Errorf("Component = %v", err)
	}
}
