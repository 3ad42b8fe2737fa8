package component

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm"
)

// testCache is the compile cache of all tests.
var testCache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "rlhost-component")
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

// modules returns modules that are closed at the end of the test.
func modules(t testing.TB) *Modules {
	t.Helper()
	r, err := wasm.New(wasm.Options{CacheDir: testCache})
	must(t, err)
	l := NewModules(r)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// example returns the path of a module of the examples.
func example(name string) string { return "../../../examples/plugins/" + name + "-c/" + name + ".wasm" }

// made returns an unconfigured component of a module.
func made(t testing.TB, s Source) *component {
	t.Helper()
	c, err := modules(t).Component(s)
	must(t, err)
	return c.(*component)
}

// file writes a module to a file.
func file(t testing.TB, module []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "guest.wasm")
	must(t, os.WriteFile(path, module, 0o644))
	return path
}

// source names a module with default limits.
func source(path string, grants ...string) Source {
	return Source{Source: env.Source{Name: "guest", Use: path, Grants: grants}, MaxRestarts: 3}
}

// started returns a rig with a component of a module.
func started(t testing.TB, s Source, o plugintest.RigOptions, table map[string]any) (*plugintest.Rig, *component) {
	t.Helper()
	g := made(t, s)
	if o.Name == "" {
		o.Name = "guest"
	}
	return plugintest.NewRig(t, g, o, plugintest.DecodeTable(table)), g
}

// blocks are committed trajectories.
type blocks struct {
	t      testing.TB
	schema *trajectory.Schema
	set    *arena.Set
	arena  *arena.Arena
}

// newBlocks makes an arena of trajectories.
func newBlocks(t testing.TB, set *arena.Set, n int, shape trajectory.Shape) *blocks {
	t.Helper()
	schema, err := trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), shape)
	must(t, err)
	a, err := set.Add(arena.Config{Name: "blocks", Blocks: n, BlockBytes: schema.Bytes, Schema: schema})
	must(t, err)
	return &blocks{t, schema, set, a}
}

// with returns a handle, with a claim, of a block with these rewards.
func (b *blocks) with(rewards ...float32) hostabi.Handle {
	b.t.Helper()
	loan, err := b.arena.Loan()
	must(b.t, err)
	tr := trajectory.Trajectory{Schema: b.schema, Mem: loan.Bytes()}
	clear(tr.Float32(trajectory.Reward))
	copy(tr.Float32(trajectory.Reward), rewards)
	h, err := loan.Commit()
	must(b.t, err)
	return h
}

// rewards returns the rewards of a block.
func (b *blocks) rewards(h hostabi.Handle) []float32 {
	b.t.Helper()
	lease, err := b.arena.Lease(h)
	must(b.t, err)
	tr := trajectory.Trajectory{Schema: b.schema, Mem: lease.Bytes()}
	rewards := slices.Clone(tr.Float32(trajectory.Reward))
	must(b.t, lease.Release())
	return rewards
}

// granted lets the shapers of the examples write.
func granted() map[string][]string { return map[string][]string{"on_rewards": {"shaped_reward"}} }

var _ core.Component = (*component)(nil)
