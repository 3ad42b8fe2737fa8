package builtin

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// closing counts how often it is closed.
type closing struct {
	env.Plugin
	closed int
}

func (c *closing) Close() error {
	c.closed++
	return nil
}

func TestEngines_LoadTakesWhatSpecHasLoaded(t *testing.T) {
	e := &Engines{}
	defer e.Close()
	table := graph.EnvTable{Source: env.Source{Use: "cartpole@1"}}
	if _, err := e.spec(t.Context(), "pole", table, "."); err != nil {
		t.Fatal(err)
	}
	kept := e.loaded.plugin
	other, err := e.load(t.Context(), "other", table, ".")
	if err != nil || other == kept {
		t.Errorf("another environment is the one that waits, or fails: %v", err)
	}
	first, err := e.load(t.Context(), "pole", table, ".")
	if err != nil || first != kept {
		t.Errorf("the first load is not the one that waits: %v", err)
	}
	second, err := e.load(t.Context(), "pole", table, ".")
	if err != nil || second == kept {
		t.Errorf("the second load is the first: %v", err)
	}
	for _, p := range []env.Plugin{other, first, second} {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEngines_LoadFailsAsSpecDid(t *testing.T) {
	e := &Engines{}
	defer e.Close()
	table := graph.EnvTable{Source: env.Source{Use: "gone.wasm"}}
	dir := t.TempDir()
	_, asked := e.spec(t.Context(), "gone", table, dir)
	if asked == nil {
		t.Fatal("what does not exist has a spec")
	}
	if err := os.WriteFile(filepath.Join(dir, "gone.wasm"), plugins.Builtins()["cartpole@1"], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := e.load(t.Context(), "gone", table, dir); err == nil || err.Error() != asked.Error() {
		t.Errorf("the first load does not say what Spec said: %v", err)
	}
	p, err := e.load(t.Context(), "gone", table, dir)
	if err != nil {
		t.Fatalf("the second load: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

func TestLoaded_ClosesWhatNobodyTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l loaded
		replaced, late, last := &closing{}, &closing{}, &closing{}
		for _, p := range []*closing{replaced, late} {
			if err := l.keep(p, nil, loadedAs{name: "a"}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(keepLoaded)
		synctest.Wait()
		if _, _, ok := l.take(loadedAs{name: "a"}); ok {
			t.Error("one that has waited too long is taken")
		}
		if err := l.keep(last, nil, loadedAs{name: "a"}); err != nil {
			t.Fatal(err)
		}
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * keepLoaded)
		synctest.Wait()
		for i, p := range []*closing{replaced, late, last} {
			if p.closed != 1 {
				t.Errorf("plugin %d was closed %d times", i, p.closed)
			}
		}
	})
}
