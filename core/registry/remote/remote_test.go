package remote

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/registry"
	"github.com/rlhost/rlhost/core/registry/registrytest"
)

// listen serves names at a path in a folder of this user's own.
func listen(t testing.TB, n registry.Names) (server *control.Server, path string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	v := control.Verbs{}
	On(v, n)
	path = filepath.Join(dir, "names.sock")
	server, err := control.Listen(path, v, control.ListenOptions{Clients: 256})
	if err != nil {
		t.Fatal(err)
	}
	return server, path
}

// serve serves an empty registry for a test, and returns a client of it.
func serve(t testing.TB) (*Client, *registry.Memory) {
	t.Helper()
	n := registry.NewMemory(registry.Limits{})
	server, path := listen(t, n)
	c := NewClient(path)
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return c, n
}

func TestClient_PassesTheSuite(t *testing.T) {
	registrytest.Test(t, func(t *testing.T) registry.Names {
		c, _ := serve(t)
		return c
	})
}

// TestClient_DoesWhatMemoryDoes makes the same calls of both and compares what they return.
func TestClient_DoesWhatMemoryDoes(t *testing.T) {
	c, _ := serve(t)
	calls := []struct {
		name string
		call func(n registry.Names) (any, error)
	}{
		{"add", func(n registry.Names) (any, error) { return n.Add(t.Context(), "a/b", "x", registry.Options{}) }},
		{"add again", func(n registry.Names) (any, error) { return n.Add(t.Context(), "a/b", "y", registry.Options{}) }},
		{"replace", func(n registry.Names) (any, error) {
			return n.Add(t.Context(), "a/b", "z", registry.Options{Replace: true, TTL: time.Hour})
		}},
		{"renew", func(n registry.Names) (any, error) { return nil, n.Renew(t.Context(), "a/b", 2, time.Minute) }},
		{"renew the older", func(n registry.Names) (any, error) { return nil, n.Renew(t.Context(), "a/b", 1, time.Minute) }},
		{"renew with a negative TTL", func(n registry.Names) (any, error) { return nil, n.Renew(t.Context(), "a/b", 2, -1) }},
		{"child", func(n registry.Names) (any, error) {
			name, lease, err := n.AddChild(t.Context(), "w", "1", registry.Options{})
			return fmt.Sprint(strings.HasPrefix(name, "w/"), len(name), lease), err
		}},
		{"get", func(n registry.Names) (any, error) { return n.Get(t.Context(), "a/b") }},
		{"get of none", func(n registry.Names) (any, error) { return n.Get(t.Context(), "a") }},
		{"get of no name", func(n registry.Names) (any, error) { return n.Get(t.Context(), "a//b") }},
		{"list", func(n registry.Names) (any, error) { return n.List(t.Context(), "a") }},
		{"list of nothing", func(n registry.Names) (any, error) {
			entries, err := n.List(t.Context(), "nothing")
			return len(entries), err
		}},
		{"wait", func(n registry.Names) (any, error) { return registry.Wait(t.Context(), n, "a/b") }},
		{"a long value", func(n registry.Names) (any, error) {
			return n.Add(t.Context(), "c", strings.Repeat("x", registry.MaxValue+1), registry.Options{})
		}},
		{"any bytes", func(n registry.Names) (any, error) {
			return n.Add(t.Context(), "d", "\x00 \"\\ ä", registry.Options{})
		}},
		{"get of any bytes", func(n registry.Names) (any, error) { return n.Get(t.Context(), "d") }},
		{"delete with another's lease", func(n registry.Names) (any, error) { return nil, n.Delete(t.Context(), "d", 1) }},
		{"delete", func(n registry.Names) (any, error) { return nil, n.Delete(t.Context(), "d", 0) }},
		{"delete of none", func(n registry.Names) (any, error) { return nil, n.Delete(t.Context(), "d", 0) }},
		{"clear", func(n registry.Names) (any, error) { return n.Clear(t.Context(), "") }},
		{"watch of no name", func(n registry.Names) (any, error) {
			for _, err := range n.Watch(t.Context(), "/") {
				return nil, err
			}
			return nil, nil
		}},
	}
	local := registry.NewMemory(registry.Limits{})
	for _, call := range calls {
		want, wantErr := call.call(local)
		got, err := call.call(c)
		if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%s: %v, %v, want %v, %v", call.name, got, err, want, wantErr)
		}
		for _, is := range codes {
			if errors.Is(err, is) != errors.Is(wantErr, is) {
				t.Errorf("%s: error %v is %v: %v", call.name, err, is, errors.Is(err, is))
			}
		}
	}
}

func TestClient_WatchesUntilTheLoopIsLeft(t *testing.T) {
	c, n := serve(t)
	if _, err := n.Add(t.Context(), "w/0", "a", registry.Options{}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for e, err := range c.Watch(t.Context(), "w") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Kind, e.Name, e.Value))
		if e.Kind == registry.Listed {
			if _, err := n.Add(t.Context(), "w/1", "b", registry.Options{TTL: 50 * time.Millisecond}); err != nil {
				t.Fatal(err)
			}
		}
		if e.Kind == registry.Deleted {
			break
		}
	}
	if want := []string{"1w/0a", "3", "1w/1b", "2w/1"}; !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if v, err := c.Get(t.Context(), "w/0"); v != "a" || err != nil {
		t.Errorf("after a watch: %q, %v", v, err)
	}
}

func TestClient_SaysWhyAWatchEnds(t *testing.T) {
	server, path := listen(t, registry.NewMemory(registry.Limits{}))
	c := NewClient(path)
	ended := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	for e, err := range c.Watch(ctx, "") {
		if e.Kind == registry.Listed {
			cancel(ended)
		} else if !errors.Is(err, ended) {
			t.Errorf("event %v, %v", e, err)
		}
	}
	for e, err := range c.Watch(t.Context(), "") {
		var said *control.Error
		if e.Kind == registry.Listed {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		} else if !errors.As(err, &said) || said.Code != control.CodeEnded {
			t.Errorf("event %v, %v", e, err)
		}
	}
	if _, err := c.Get(t.Context(), "a"); err == nil {
		t.Error("nobody serves names, and there is an answer")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Get(t.Context(), "a"); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// The names of a process that is gone end with their TTL; another can take them over at once.
func TestKeep_OverTheSocket(t *testing.T) {
	c, n := serve(t)
	k, err := registry.Keep(t.Context(), c, "w", "x", registry.Options{TTL: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Add(t.Context(), "w", "y", registry.Options{Replace: true}); err != nil {
		t.Fatal(err)
	}
	<-k.Lost()
	if !errors.Is(k.Err(), registry.ErrLost) {
		t.Errorf("error %v", k.Err())
	}
	if err := k.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := c.Get(t.Context(), "w"); v != "y" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}

// BenchmarkClient_Add adds names among 10,000, one after 100 watchers have heard of the previous one: how long an addition takes, and until
// the last of them has heard of it.
func BenchmarkClient_Add(b *testing.B) {
	const watchers = 100
	c, n := serve(b)
	for i := range 10_000 {
		if _, err := n.Add(b.Context(), fmt.Sprintf("ana/pole/w/%d", i), "x", registry.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	heard := make(chan struct{})
	for range watchers {
		go func() {
			for range c.Watch(ctx, "bea") {
				heard <- struct{}{}
			}
		}()
	}
	all := func() {
		for range watchers {
			<-heard
		}
	}
	all() // of what there was
	var adds, hears []time.Duration
	for b.Loop() {
		began := time.Now()
		if _, err := c.Add(b.Context(), fmt.Sprintf("bea/%d", len(adds)), "y", registry.Options{TTL: time.Hour}); err != nil {
			b.Fatal(err)
		}
		adds = append(adds, time.Since(began))
		all()
		hears = append(hears, time.Since(began))
	}
	slices.Sort(adds)
	slices.Sort(hears)
	b.ReportMetric(float64(adds[len(adds)/2].Microseconds()), "add-p50-µs")
	b.ReportMetric(float64(hears[len(hears)/2].Microseconds()), "heard-p50-µs")
	b.ReportMetric(float64(hears[len(hears)*99/100].Microseconds()), "heard-p99-µs")
}
