package member

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// getting is a host that gets files of a run.
type getting struct {
	t      *testing.T
	link   *cluster.Link
	cache  *Cache
	asked  []int // parts
	answer func(subject string, data []byte) []byte
}

func newGetting(t *testing.T, all *pieces) *getting {
	server, err := cluster.Serve(cluster.ServerOptions{Address: "127.0.0.1:0", Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	link, err := cluster.Connect(t.Context(), cluster.LinkOptions{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	owner := &Away{places: &places{}, current: &build{pieces: all}}
	g := &getting{t: t, link: link, cache: &Cache{Dir: filepath.Join(t.TempDir(), "joined"), Limit: 64 << 20, Age: time.Hour}, answer: owner.answerPiece}
	err = link.Answer(cluster.SubjectUp("KEY", verbPiece), func(subject string, data []byte) []byte {
		var q pieceRequest
		if err := json.Unmarshal(data, &q); err != nil {
			t.Error(err)
		}
		g.asked = append(g.asked, q.Part)
		return g.answer(subject, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// get gets files, and lets them go again.
func (g *getting) get(list ...piece) (paths map[string]string, err error) {
	ctx, stop := context.WithCancel(g.t.Context())
	defer stop()
	files := getter{ctx: ctx, cache: g.cache, ask: func(ctx context.Context, q pieceRequest) ([]byte, error) {
		return g.link.Ask(ctx, cluster.SubjectUp("KEY", verbPiece), encode(q))
	}}
	g.asked = nil
	paths, err = files.all(list)
	files.letGo()
	return paths, err
}

// names lists what the cache has.
func (g *getting) names() (names []string) {
	list, err := os.ReadDir(g.cache.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func randomBytes(t *testing.T, n int) []byte {
	random, content := testkit.Random(t), make([]byte, n)
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	return content
}

// moduleAndData are the pieces of a run with a module and a folder of data of three parts each.
func moduleAndData(t *testing.T) (all *pieces, use, data piece) {
	dir, content := t.TempDir(), randomBytes(t, 2*partBytes+100)
	if err := errors.Join(os.WriteFile(dir+"/walk.wasm", content, 0o600), os.MkdirAll(dir+"/levels/1", 0o700), os.WriteFile(dir+"/levels/1/a", content, 0o600)); err != nil {
		t.Fatal(err)
	}
	all = &pieces{contents: map[string][]byte{}}
	if err := errors.Join(all.module("env.walk.use", dir+"/walk.wasm"), all.folder("env.walk.data", dir+"/levels")); err != nil {
		t.Fatal(err)
	}
	return all, all.list[0], all.list[1]
}

// A host gets a file once, in parts, keeps it by its digest, and continues what was cut; neither its folder nor what is begun is believed.
func TestPart_GetsFilesByTheirDigests(t *testing.T) {
	all, use, data := moduleAndData(t)
	g := newGetting(t, all)
	content := all.contents[use.SHA256]
	module, folder, begun := g.cache.path(&use), g.cache.path(&data), filepath.Join(g.cache.Dir, use.SHA256+".part")
	write := func(path string, content []byte) func() error {
		return func() error { return os.WriteFile(path, content, 0o600) }
	}
	for _, c := range []struct {
		what   string
		before func() error
		asked  []int
	}{
		{"nothing is there", func() error { return nil }, []int{0, 1, 2, 0, 1, 2}},
		{"all is there", func() error { return nil }, nil},
		{"a module has changed", write(module, []byte("other")), []int{0, 1, 2}},
		{"data has changed", write(filepath.Join(folder, "1", "a"), []byte("other")), []int{0, 1, 2}},
		{"data has grown", write(filepath.Join(folder, "1", "b"), nil), []int{0, 1, 2}},
		{"one part is there", func() error { return errors.Join(os.Remove(module), write(begun, content[:partBytes+10])()) }, []int{1, 2}},
		{"all parts are there", func() error { return errors.Join(os.Remove(module), write(begun, content)()) }, []int{2}},
		{"a part is bad", func() error { return errors.Join(os.Remove(module), write(begun, content[1:partBytes+1])()) }, []int{1, 2, 0, 1, 2}},
		{"more is there", func() error {
			return errors.Join(os.Remove(module), write(begun, append(content[:len(content):len(content)], 1))())
		}, []int{0, 1, 2}},
	} {
		if err := c.before(); err != nil {
			t.Fatal(err)
		}
		paths, err := g.get(use, data)
		if err != nil || len(paths) != 2 || paths["env.walk.use"] != module || paths["env.walk.data"] != folder || !slices.Equal(g.asked, c.asked) {
			t.Errorf("%s: %q, %v, parts %v, want %v", c.what, paths, err, g.asked, c.asked)
		}
		if got, err := os.ReadFile(module); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: the module has %d bytes, %v", c.what, len(got), err)
		}
		if sum, err := files.FolderSHA256(folder); err != nil || sum != data.SHA256 {
			t.Errorf("%s: the folder has the digest %s, %v", c.what, sum, err)
		}
		if names := g.names(); len(names) != 2 {
			t.Errorf("%s: the cache has %q", c.what, names)
		}
	}
}

// What arrives is what was named, or nothing of it stays and the error says what to do.
func TestPart_RefusesOtherFiles(t *testing.T) {
	_, use, data := moduleAndData(t)
	g := newGetting(t, nil)
	g.answer = func(_ string, data []byte) []byte { return []byte("lies") }
	truth := digest([]byte("true"))
	for _, c := range []struct {
		says string
		code control.Code
		of   piece
	}{
		{"the run has named " + truth, CodeDigest, piece{SHA256: truth, Size: 4}},
		{"another number of bytes", CodeDigest, piece{SHA256: truth, Size: 3}},
		{"not an archive", CodeDigest, piece{SHA256: truth, Size: 4, Folder: true}},
		{"with the digest", "", piece{SHA256: "../../x", Size: 4}},
		{"of 300000000 bytes", "", piece{SHA256: truth, Size: 300_000_000}},
	} {
		c.of.Key = "env.walk.use"
		_, err := g.get(c.of)
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "env.walk.use") || c.code != "" && !isCode(err, c.code) {
			t.Errorf("%v, want %s %q", err, c.code, c.says)
		}
	}
	if names := g.names(); len(names) != 0 {
		t.Errorf("the cache has %q", names)
	}
	g.cache.Limit = int64(use.Size) - 1
	if _, err := g.get(use); !isCode(err, CodeNoRoom) || !strings.Contains(err.Error(), "it may have") || len(g.asked) > 0 {
		t.Errorf("more than the limit: %v, parts %v", err, g.asked)
	}
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.cache = &Cache{Dir: filepath.Join(blocked, "joined"), Limit: 1 << 30}
	if _, err := g.get(data); !isCode(err, CodeNoRoom) || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("a folder that cannot be: %v", err)
	}
}

// Two processes that lack a file get it without waiting for one another.
func TestCache_IsShared(t *testing.T) {
	all, use, _ := moduleAndData(t)
	g := newGetting(t, all)
	other, err := g.cache.begin(&use)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.get(use); err != nil || !slices.Equal(g.asked, []int{0, 1, 2}) {
		t.Errorf("while another gets it: %v, parts %v", err, g.asked)
	}
	for at := 0; at < use.Size; at += partBytes {
		if err := other.add(all.contents[use.SHA256][at:min(at+partBytes, use.Size)]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(g.cache.keep(other, &use), other.end(nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.get(use); err != nil || len(g.asked) > 0 || len(g.names()) != 1 {
		t.Errorf("after both: %v, parts %v, the cache has %q", err, g.asked, g.names())
	}
}

// The longest unused goes first, and what is used or another's stays.
func TestCache_IsBounded(t *testing.T) {
	c := &Cache{Dir: t.TempDir(), Limit: 1000, Age: 24 * time.Hour}
	add := func(name string, size int, unused time.Duration) piece {
		x := piece{SHA256: digest([]byte(name)), Size: size, Folder: strings.HasPrefix(name, "data")}
		path, file := c.path(&x), c.path(&x)
		if x.Folder {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			file = filepath.Join(path, "file")
		}
		at := time.Now().Add(-unused)
		if err := errors.Join(os.WriteFile(file, make([]byte, size), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
		return x
	}
	old, data, used, late := add("old", 10, 30*time.Hour), add("data old", 300, 3*time.Hour), add("used", 500, 40*time.Hour), add("late", 100, time.Hour)
	if err := os.WriteFile(filepath.Join(c.Dir, "notes.txt"), make([]byte, 5000), 0o600); err != nil {
		t.Fatal(err)
	}
	claim, err := os.Open(c.path(&used))
	if err != nil || !held(claim, c.path(&used), true) {
		t.Fatal(err)
	}
	has := func(x piece) bool {
		_, err := os.Stat(c.path(&x))
		return err == nil
	}
	for _, step := range []struct{ room, removed, left int64 }{{0, 10, 900}, {100, 0, 900}, {101, 300, 600}, {900, 100, 500}} {
		if removed, left, err := c.Tidy(step.room); removed != step.removed || left != step.left || err != nil {
			t.Errorf("room for %d: %d gone, %d left, %v; want %+v", step.room, removed, left, err, step)
		}
	}
	if has(old) || has(data) || has(late) || !has(used) {
		t.Errorf("there are old %v, data %v, late %v, used %v", has(old), has(data), has(late), has(used))
	}
	if err := claim.Close(); err != nil {
		t.Fatal(err)
	}
	if removed, left, err := c.Tidy(0); removed != 500 || left != 0 || err != nil {
		t.Errorf("once nobody uses it: %d gone, %d left, %v", removed, left, err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "notes.txt")); err != nil {
		t.Error(err)
	}
}

// Whatever the pipeline of a run says, no file, no variable and no program of this host enters it.
func TestAllowed_KeepsTheHostsOwn(t *testing.T) {
	parts, engines := builtin.New(builtin.Options{})
	t.Cleanup(func() {
		if err := engines.Close(); err != nil {
			t.Error(err)
		}
	})
	module := filepath.Join("..", "..", "examples", "plugins", "cartpole-c", "cartpole.wasm")
	abs, err := filepath.Abs(module)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("RLHOST_TEST_SECRET", "secret")
	ran := filepath.Join(t.TempDir(), "ran")
	for what, c := range map[string]struct{ env, more, says string }{
		"a module":          {`use = "` + abs + `"`, "", "a file of this host"},
		"a relative module": {`use = "` + module + `"`, "", "a file of this host"},
		"data": {`use = "cartpole@1"
data = "/etc"`, "", "a file of this host"},
		"a wrapper": {`use = "cartpole@1"
wrap = [{ use = "` + abs + `" }]`, "", "a file of this host"},
		"data of a wrapper": {`use = "cartpole@1"
wrap = [{ use = "/sent.wasm", data = "/etc" }]`, "", "a file of this host"},
		"a component":         {`use = "cartpole@1"`, "[component.shaper]\nruntime = \"wasm\"\nuse = \"" + abs + "\"", "a file of this host"},
		"data of a component": {`use = "cartpole@1"`, "[component.shaper]\nruntime = \"wasm\"\nuse = \"/sent.wasm\"\ndata = \"/etc\"", "a file of this host"},
		"Python":              {`use = "gymnasium:CartPole-v1"`, "", "environments of Python"},
		"a program":           {`use = "own:pole"`, "[plugin.own]\npath = \"/bin/sh\"\nargs = [\"-c\", \"touch " + ran + "\"]", "may not run on this host"},
		"a variable": {`use = "cartpole@1"
args = { gravity = "${RLHOST_TEST_SECRET}" }`, "", "RLHOST_TEST_SECRET"},
	} {
		text := "rlhost = 1\n[run]\nname = \"x\"\n[env.walk]\n" + c.env + "\n[train]\npreset = \"fast\"\nenv = \"walk\"\n" + c.more + "\n"
		only := (&allowing{parts: parts, own: &sent{paths: []string{"/sent.wasm"}, programs: map[string]string{"own": "self"}}}).limited()
		g, err := graph.Parse("pipeline.toml", []byte(text), parseOptions(only, nil))
		if err == nil {
			e := &g.Envs[0]
			_, err = only.Load(t.Context(), e.Name, e.Table, g.Dir)
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", what, err, c.says)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the run's has run")
	}
}
