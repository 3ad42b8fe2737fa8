// Package registrytest is what every back end of names must do, as tests: registry.Memory, names over a socket, names over several hosts.
package registrytest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/registry"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// Test runs all tests. make returns names that are empty, which are used by one test.
func Test(t *testing.T, make func(*testing.T) registry.Names) {
	for name, test := range map[string]func(*testing.T, registry.Names){
		"AddGetListDelete": addGetListDelete,
		"AnyName":          anyName,
		"Children":         children,
		"Replaced":         replaced,
		"TTL":              endsWithItsTTL,
		"Kept":             kept,
		"Watch":            watch,
		"WaitAndGone":      waitAndGone,
		"Refused":          refused,
		"Random":           random,
	} {
		t.Run(name, func(t *testing.T) { test(t, make(t)) })
	}
}

func add(t *testing.T, n registry.Names, name, value string, o registry.Options) registry.Lease {
	t.Helper()
	l, err := n.Add(t.Context(), name, value, o)
	if err != nil || l == 0 {
		t.Fatalf("add %s: lease %d, %v", name, l, err)
	}
	return l
}

// wants checks a list.
func wants(t *testing.T, n registry.Names, root string, want ...string) {
	t.Helper()
	entries, err := n.List(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name+"="+e.Value)
	}
	if !slices.Equal(got, want) {
		t.Errorf("list of %q: %q, want %q", root, got, want)
	}
}

func addGetListDelete(t *testing.T, n registry.Names) {
	add(t, n, "ana/pole/w/1", "one", registry.Options{})
	add(t, n, "ana/pole/w/0", "", registry.Options{})
	add(t, n, "ana/pole/w", "all", registry.Options{})
	add(t, n, "ana/pole/ways", "other", registry.Options{})
	wants(t, n, "ana/pole/w", "ana/pole/w=all", "ana/pole/w/0=", "ana/pole/w/1=one")
	wants(t, n, "", "ana/pole/w=all", "ana/pole/w/0=", "ana/pole/w/1=one", "ana/pole/ways=other")
	wants(t, n, "ana/p")
	if _, err := n.Add(t.Context(), "ana/pole/w", "again", registry.Options{}); !errors.Is(err, registry.ErrExists) {
		t.Errorf("add again: %v", err)
	}
	if v, err := n.Get(t.Context(), "ana/pole/w"); v != "all" || err != nil {
		t.Errorf("get: %q, %v", v, err)
	}
	if _, err := n.Get(t.Context(), "ana/pole"); !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("get of a place without a value: %v", err)
	}
	if err := n.Delete(t.Context(), "ana/pole", 0); !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("delete of a place without a value: %v", err)
	}
	if err := n.Delete(t.Context(), "ana/pole/w", 0); err != nil {
		t.Error(err)
	}
	if err := n.Delete(t.Context(), "ana/pole/w", 0); !errors.Is(err, registry.ErrUnknown) {
		t.Errorf("delete again: %v", err)
	}
	add(t, n, "ana/pole/w", "new", registry.Options{})
	if n, err := n.Clear(t.Context(), "ana/pole/w"); n != 3 || err != nil {
		t.Errorf("clear: %d, %v", n, err)
	}
	wants(t, n, "", "ana/pole/ways=other")
}

func anyName(t *testing.T, n registry.Names) {
	names := []string{
		"a.b/c", "a/b.c", "*", ">", "a/*/>", "=", "=2e", "ü/ß", "日本", "$KV", "-_", "A/a", strings.Repeat("ü", registry.MaxName/2),
		strings.Repeat("a/", registry.MaxParts-1) + "a",
	}
	for i, name := range names {
		add(t, n, name, fmt.Sprint(i, strings.Repeat("x", registry.MaxValue-2)), registry.Options{})
	}
	for i, name := range names {
		if v, err := n.Get(t.Context(), name); err != nil || len(v) < registry.MaxValue-2 || !strings.HasPrefix(v, fmt.Sprint(i)) {
			t.Errorf("get %s: %.10q, %v", name, v, err)
		}
	}
	entries, err := n.List(t.Context(), "")
	if err != nil || len(entries) != len(names) {
		t.Errorf("%d entries, want %d: %v", len(entries), len(names), err)
	}
	for _, e := range entries {
		if !slices.Contains(names, e.Name) {
			t.Errorf("entry %q was not added", e.Name)
		}
	}
}

func children(t *testing.T, n registry.Names) {
	seen := map[string]bool{}
	for range 1000 {
		name, lease, err := n.AddChild(t.Context(), "workers", "x", registry.Options{})
		if err != nil || lease == 0 || seen[name] || !strings.HasPrefix(name, "workers/") {
			t.Fatalf("child %q, %v", name, err)
		}
		seen[name] = true
	}
}

// The older of two holders has lost the name: it can neither renew nor delete the newer one's.
func replaced(t *testing.T, n registry.Names) {
	older := add(t, n, "run", "a", registry.Options{TTL: time.Hour})
	newer := add(t, n, "run", "b", registry.Options{TTL: time.Hour, Replace: true})
	if err := n.Renew(t.Context(), "run", older, time.Hour); !errors.Is(err, registry.ErrLost) {
		t.Errorf("renew: %v", err)
	}
	if err := n.Delete(t.Context(), "run", older); !errors.Is(err, registry.ErrLost) {
		t.Errorf("delete: %v", err)
	}
	if err := n.Renew(t.Context(), "run", newer, 0); err != nil {
		t.Errorf("renew: %v", err)
	}
	wants(t, n, "", "run=b")
	if err := n.Delete(t.Context(), "run", newer); err != nil {
		t.Error(err)
	}
	if err := n.Renew(t.Context(), "run", newer, time.Hour); !errors.Is(err, registry.ErrLost) {
		t.Errorf("renew of a deleted name: %v", err)
	}
	add(t, n, "run", "c", registry.Options{Replace: true})
	wants(t, n, "", "run=c")
}

// ends returns how long after now each name ended, once all of some have.
func ends(t *testing.T, n registry.Names, until ...string) map[string]time.Duration {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	began, gone := time.Now(), map[string]time.Duration{}
	for e, err := range n.Watch(ctx, "") {
		if err != nil {
			t.Fatalf("only %v have ended: %v", gone, err)
		}
		if e.Kind == registry.Deleted {
			gone[e.Name] = time.Since(began)
		}
		if !slices.ContainsFunc(until, func(name string) bool { return gone[name] == 0 }) {
			break
		}
	}
	return gone
}

func endsWithItsTTL(t *testing.T, n registry.Names) {
	add(t, n, "stays", "", registry.Options{})
	add(t, n, "short", "", registry.Options{TTL: 300 * time.Millisecond})
	renewed := add(t, n, "renewed", "", registry.Options{TTL: time.Second})
	for _, ttl := range []time.Duration{0, time.Hour, 3 * time.Second} {
		if err := n.Renew(t.Context(), "renewed", renewed, ttl); err != nil {
			t.Fatal(err)
		}
	}
	gone := ends(t, n, "short", "renewed")
	// The names are some time older than the watch.
	if gone["renewed"] < 2*time.Second || gone["renewed"] < gone["short"] || gone["stays"] != 0 {
		t.Errorf("names ended after %v", gone)
	}
	wants(t, n, "", "stays=")
	if err := n.Renew(t.Context(), "renewed", renewed, time.Hour); !errors.Is(err, registry.ErrLost) {
		t.Errorf("renew of an ended name: %v", err)
	}
	add(t, n, "short", "again", registry.Options{})
}

func kept(t *testing.T, n registry.Names) {
	k, err := registry.Keep(t.Context(), n, "w", "x", registry.Options{TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	add(t, n, "clock", "", registry.Options{TTL: 2 * time.Second}) // it ends after the kept name would have
	ends(t, n, "clock")
	wants(t, n, "", "w=x")
	add(t, n, "w", "y", registry.Options{Replace: true})
	<-k.Lost()
	if !errors.Is(k.Err(), registry.ErrLost) {
		t.Errorf("error %v", k.Err())
	}
	if err := k.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wants(t, n, "", "w=y")
}

func watch(t *testing.T, n registry.Names) {
	add(t, n, "a/b", "1", registry.Options{})
	add(t, n, "ab", "1", registry.Options{})
	lease := add(t, n, "a", "1", registry.Options{TTL: time.Hour})
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	var got []string
	for e, err := range n.Watch(ctx, "a") {
		if err != nil {
			t.Fatalf("after %q: %v", got, err)
		}
		got = append(got, fmt.Sprint(e.Kind, e.Name, "=", e.Value))
		switch len(got) {
		case 3:
			slices.Sort(got[:2])
			if err := n.Renew(ctx, "a", lease, time.Hour); err != nil { // of which nobody is told
				t.Fatal(err)
			}
			add(t, n, "a/b/c", "2", registry.Options{})
		case 4:
			add(t, n, "ab/c", "2", registry.Options{})
			add(t, n, "a/b", "3", registry.Options{Replace: true})
		case 5:
			if err := n.Delete(ctx, "a", lease); err != nil {
				t.Fatal(err)
			}
		}
		if len(got) == 6 {
			break
		}
	}
	want := []string{"1a/b=1", "1a=1", "3=", "1a/b/c=2", "1a/b=3", "2a="}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

func waitAndGone(t *testing.T, n registry.Names) {
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	got := make(chan string, 1)
	go func() {
		v, err := registry.Wait(ctx, n, "a/b")
		got <- fmt.Sprint(v, err)
	}()
	add(t, n, "a/b/c", "below", registry.Options{})
	add(t, n, "a/b", "value", registry.Options{TTL: time.Second})
	if v := <-got; v != "value<nil>" {
		t.Errorf("got %s", v)
	}
	if err := registry.WaitGone(ctx, n, "a/b", "never"); err != nil {
		t.Error(err)
	}
	short, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, err := registry.Wait(short, n, "never"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

func refused(t *testing.T, n registry.Names) {
	for _, name := range []string{"", "/", "/a", "a/", "a//b", "a b", "a\x00", "a\n", "a\xff", strings.Repeat("a", registry.MaxName+1), strings.Repeat("a/", registry.MaxParts) + "a"} {
		if _, err := n.Add(t.Context(), name, "", registry.Options{}); !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("add %q: %v", name, err)
		}
		if _, err := n.Get(t.Context(), name); !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("get %q: %v", name, err)
		}
		if _, err := registry.Wait(t.Context(), n, name); !errors.Is(err, registry.ErrInvalid) {
			t.Errorf("wait %q: %v", name, err)
		}
	}
	if _, err := n.Add(t.Context(), "a", strings.Repeat("x", registry.MaxValue+1), registry.Options{}); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("a long value: %v", err)
	}
	if _, err := n.Add(t.Context(), "a", "\xff", registry.Options{}); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("a value that is no text: %v", err)
	}
	if _, err := n.Add(t.Context(), "a", "", registry.Options{TTL: -1}); !errors.Is(err, registry.ErrInvalid) {
		t.Errorf("a negative TTL: %v", err)
	}
}

// Random operations leave what a plain map says, and a watcher that applies its events comes to the same.
func random(t *testing.T, n registry.Names) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	model := map[string]string{}
	name := func() string {
		parts := make([]string, 1+r.IntN(3))
		for i := range parts {
			parts[i] = []string{"a", "b", "c.d"}[r.IntN(3)]
		}
		return strings.Join(parts, "/")
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	watched := make(chan map[string]string)
	go func() { watched <- follow(ctx, n, "a", "a/end") }()
	for i := range 500 {
		at := name()
		_, there := model[at]
		switch r.IntN(6) {
		case 0, 1, 2:
			replace := r.IntN(2) == 0
			if _, err := n.Add(ctx, at, fmt.Sprint(i), registry.Options{Replace: replace}); (err == nil) != (replace || !there) {
				t.Fatalf("add %s: %v", at, err)
			} else if err == nil {
				model[at] = fmt.Sprint(i)
			}
		case 3:
			if err := n.Delete(ctx, at, 0); (err == nil) != there {
				t.Fatalf("delete %s: %v", at, err)
			}
			delete(model, at)
		case 4:
			before := len(model)
			maps.DeleteFunc(model, func(name, _ string) bool { return below(name, at) })
			if cleared, err := n.Clear(ctx, at); cleared != before-len(model) || err != nil {
				t.Fatalf("clear %s: %d of %d, %v", at, cleared, before-len(model), err)
			}
		default:
			if v, err := n.Get(ctx, at); v != model[at] || (err == nil) != there {
				t.Fatalf("get %s: %q, %v", at, v, err)
			}
		}
	}
	add(t, n, "a/end", "", registry.Options{Replace: true})
	maps.DeleteFunc(model, func(name, _ string) bool { return !below(name, "a") })
	model["a/end"] = ""
	if got := <-watched; !maps.Equal(got, model) {
		t.Errorf("a watcher knows %v, want %v", got, model)
	}
}

func below(name, root string) bool { return name == root || strings.HasPrefix(name, root+"/") }

// follow returns the names that a watcher knows once it has heard of the last.
func follow(ctx context.Context, n registry.Names, root, last string) map[string]string {
	known := map[string]string{}
	for e, err := range n.Watch(ctx, root) {
		switch {
		case err != nil:
			return nil
		case e.Kind == registry.Set:
			known[e.Name] = e.Value
		case e.Kind == registry.Deleted:
			delete(known, e.Name)
		}
		if e.Name == last {
			break
		}
	}
	return known
}
