package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
	"github.com/rlhost/rlhost/pipeline/replay"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// A folder of data is read as the episode had it: from the run's copy, or from its place while nothing has changed there.
func TestLoader_ReadsTheDataThatTheEpisodeHad(t *testing.T) {
	run, err := runs.Create(t.TempDir(), "data")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}()
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, "maps"), 0o755), os.WriteFile(filepath.Join(dir, "maps", "first"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write("as it was")
	digest, err := files.FolderSHA256(filepath.Join(dir, "maps"))
	if err != nil {
		t.Fatal(err)
	}
	loaded := errors.New("loaded")
	var own, wrapper string
	parts := &graph.Parts{Builtins: []string{"walk@1"}, Load: func(_ context.Context, _ string, e graph.EnvTable, dir string) (env.Plugin, error) {
		own = e.DataIn(dir)
		for _, data := range e.WrapData() {
			wrapper = files.In(dir, data)
		}
		return nil, loaded
	}}
	d := loading.Described{Name: "walk", Dir: dir, Data: digest, WrapData: map[int]string{0: digest}, Wraps: map[int]string{}}
	d.Table.Use, d.Table.Data = "walk@1", "maps"
	d.Table.Wrap = []env.Wrapper{{env.KeyUse: "none.wasm", env.KeyData: "maps"}}
	module := filepath.Join(dir, "none.wasm")
	if err := os.WriteFile(module, []byte("a module"), 0o644); err != nil {
		t.Fatal(err)
	}
	if d.Wraps[0], err = files.SHA256(module); err != nil {
		t.Fatal(err)
	}
	doc, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	load := replay.Loader(t.Context(), run, parts)
	reads := func(want string) {
		t.Helper()
		own, wrapper = "", ""
		if _, err := load(&tape.Track{Head: tape.Head{Loaded: doc}}); !errors.Is(err, loaded) || own != want || wrapper != want {
			t.Errorf("%v; it reads %q and %q, want %q", err, own, wrapper, want)
		}
	}
	reads(filepath.Join(dir, "maps"))

	write("as it is now")
	var e *table.Error
	if _, err := load(&tape.Track{Head: tape.Head{Loaded: doc}}); !errors.As(err, &e) || e.Code != replay.CodeModule || !strings.Contains(e.Reason, digest) {
		t.Errorf("changed data: %v", err)
	}
	write("as it was")
	copied, err := run.StoreData(filepath.Join(dir, "maps"))
	if err != nil {
		t.Fatal(err)
	}
	write("as it is now")
	reads(copied.Path)
}

// A module is loaded as the episode had it, whatever its file is now, also where the pipeline names it by an absolute path.
func TestLoader_LoadsTheModuleThatTheEpisodeHad(t *testing.T) {
	run, err := runs.Create(t.TempDir(), "module")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}()
	dir := t.TempDir()
	path := filepath.Join(dir, "walk.wasm")
	if err := os.WriteFile(path, []byte("as it was"), 0o644); err != nil {
		t.Fatal(err)
	}
	stored, err := run.Store(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("as it is now"), 0o644); err != nil {
		t.Fatal(err)
	}
	loaded, got := errors.New("loaded"), ""
	parts := &graph.Parts{Load: func(_ context.Context, _ string, e graph.EnvTable, _ string) (env.Plugin, error) {
		got = e.Use
		return nil, loaded
	}}
	for _, use := range []string{path, "walk.wasm"} {
		d := loading.Described{Name: "walk", Dir: dir}
		d.Table.Use = use
		doc, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		_, err = replay.Loader(t.Context(), run, parts)(&tape.Track{Head: tape.Head{Loaded: doc, Hash: stored.Hash}})
		if !errors.Is(err, loaded) || got != stored.Path {
			t.Errorf("%s: %v, it is loaded from %q, want %q", use, err, got, stored.Path)
		}
	}
}
