package registry

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func mustAdd(t *testing.T, n Names, name, value string, o Options) Lease {
	t.Helper()
	l, err := n.Add(t.Context(), name, value, o)
	if err != nil || l == 0 {
		t.Fatalf("add %s: lease %d, %v", name, l, err)
	}
	return l
}

// wants checks a list.
func wants(t *testing.T, n Names, root string, want ...string) {
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

// What every back end does with names, registrytest asks of Memory too. Here is what only Memory has.
func TestMemory_NothingIsLeftOfWhatIsCleared(t *testing.T) {
	n := NewMemory(Limits{})
	mustAdd(t, n, "ana/pole/w/1", "one", Options{})
	mustAdd(t, n, "ana/pole/w", "all", Options{})
	mustAdd(t, n, "ana/pole/ways", "other", Options{})
	if _, err := n.Clear(t.Context(), ""); err != nil || len(n.root.below) != 0 || n.bytes != 0 || n.entries != 0 {
		t.Errorf("%d places, %d bytes, %d names are left: %v", len(n.root.below), n.bytes, n.entries, err)
	}
}

func TestMemory_ANameThatIsRenewedForEverHasNoEnd(t *testing.T) {
	n := NewMemory(Limits{})
	lease := mustAdd(t, n, "run", "b", Options{TTL: time.Hour})
	if err := n.Renew(t.Context(), "run", lease, 0); err != nil || n.find("run").entry.end != nil {
		t.Errorf("renew: %v, and the name ends", err)
	}
}

func TestMemory_NamesEndWithTheirTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewMemory(Limits{})
		mustAdd(t, n, "long", "", Options{TTL: 10 * time.Second})
		mustAdd(t, n, "short", "", Options{TTL: time.Second})
		short := mustAdd(t, n, "renewed", "", Options{TTL: time.Second})
		if err := n.Renew(t.Context(), "renewed", short, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ends := map[string]time.Duration{}
		began := time.Now()
		go func() {
			for e := range n.Watch(ctx, "") {
				if e.Kind == Deleted {
					ends[e.Name] = time.Since(began)
				}
			}
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := map[string]time.Duration{"short": time.Second, "renewed": 5 * time.Second, "long": 10 * time.Second}; !maps.Equal(ends, want) {
			t.Errorf("names ended after %v, want %v", ends, want)
		}
		if len(n.root.below) != 0 || n.entries != 0 {
			t.Errorf("%d places and %d names are left", len(n.root.below), n.entries)
		}
	})
}

func TestWait_ReturnsAValueAddedBeforeOrAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewMemory(Limits{})
		got := make(chan string)
		go func() {
			v, err := Wait(t.Context(), n, "a/b")
			got <- fmt.Sprint(v, err)
		}()
		synctest.Wait()
		mustAdd(t, n, "a/b/c", "below", Options{})
		synctest.Wait()
		mustAdd(t, n, "a/b", "value", Options{})
		if v := <-got; v != "value<nil>" {
			t.Errorf("got %s", v)
		}
		if v, err := Wait(t.Context(), n, "a/b"); v != "value" || err != nil {
			t.Errorf("got %q, %v", v, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Wait(ctx, n, "never"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if n.find("never") != nil {
			t.Error("a watch that has ended keeps its place")
		}
	})
}

func TestWaitGone_ReturnsWhenAllAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewMemory(Limits{})
		mustAdd(t, n, "w/0", "", Options{TTL: time.Second})
		mustAdd(t, n, "w/1", "", Options{TTL: 3 * time.Second})
		mustAdd(t, n, "w/1/below", "", Options{})
		began := time.Now()
		if err := WaitGone(t.Context(), n, "w/0", "w/1", "w/2"); err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestKeep_RenewsUntilClosedOrLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := NewMemory(Limits{})
		k, err := Keep(t.Context(), n, "w", "x", Options{TTL: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		wants(t, n, "", "w=x")
		mustAdd(t, n, "w", "y", Options{Replace: true})
		<-k.Lost()
		if !errors.Is(k.Err(), ErrLost) {
			t.Errorf("error %v", k.Err())
		}
		if err := k.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wants(t, n, "", "w=y")
		k, err = Keep(t.Context(), n, "w", "z", Options{TTL: time.Second, Replace: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Close(t.Context()); err != nil || k.Err() != nil {
			t.Error(err, k.Err())
		}
		wants(t, n, "")
		if _, err := Keep(t.Context(), n, "w", "", Options{}); !errors.Is(err, ErrInvalid) {
			t.Errorf("without a TTL: %v", err)
		}
	})
}

// A watcher that does not read costs an event a name, whatever happens to it.
func TestWatch_ASlowReaderIsToldTheNewest(t *testing.T) {
	n := NewMemory(Limits{})
	w, at := n.watch("a")
	defer n.unwatch(w, at)
	for i := range 1000 {
		mustAdd(t, n, fmt.Sprint("a/", i%10), fmt.Sprint(i), Options{Replace: true})
	}
	if err := n.Delete(t.Context(), "a/3", 0); err != nil {
		t.Fatal(err)
	}
	events := w.take()
	if len(events) != 11 || events[0].Kind != Listed || events[4] != (Event{Deleted, Entry{Name: "a/3"}}) || events[5] != (Event{Set, Entry{"a/4", "994"}}) {
		t.Errorf("events %v", events)
	}
}

func TestMemory_HasBounds(t *testing.T) {
	n := NewMemory(Limits{Entries: 2, Bytes: 40})
	if _, err := n.Add(t.Context(), "a", strings.Repeat("x", 40), Options{}); !errors.Is(err, ErrFull) {
		t.Errorf("too many bytes: %v", err)
	}
	mustAdd(t, n, "a", strings.Repeat("x", 39), Options{})
	mustAdd(t, n, "a", strings.Repeat("y", 38), Options{Replace: true})
	mustAdd(t, n, "b", "", Options{})
	if _, err := n.Add(t.Context(), "c", "", Options{}); !errors.Is(err, ErrFull) {
		t.Errorf("too many names: %v", err)
	}
}

// Random operations leave what a plain map says, and a watcher of each root that applies its events has the same.
func TestMemory_RandomOperations(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	n, model := NewMemory(Limits{}), map[string]string{}
	roots := []string{"", "a", "a/b", "b", "a/b/a"}
	watched := map[string]map[string]string{}
	watches := map[string]*watch{}
	for _, root := range roots {
		w, at := n.watch(root)
		defer n.unwatch(w, at)
		watches[root], watched[root] = w, map[string]string{}
	}
	name := func() string {
		parts := make([]string, 1+random.IntN(4))
		for i := range parts {
			parts[i] = []string{"a", "b", "c"}[random.IntN(3)]
		}
		return strings.Join(parts, "/")
	}
	in := func(name, root string) bool {
		return root == "" || name == root || strings.HasPrefix(name, root+"/")
	}
	for i := range 200_000 {
		at := name()
		_, there := model[at]
		switch random.IntN(8) {
		case 0, 1, 2:
			replace := random.IntN(2) == 0
			_, err := n.Add(t.Context(), at, fmt.Sprint(i), Options{Replace: replace, TTL: time.Duration(random.IntN(2)) * time.Hour})
			if (err == nil) != (replace || !there) {
				t.Fatalf("add %s: %v", at, err)
			}
			if err == nil {
				model[at] = fmt.Sprint(i)
			}
		case 3, 4:
			if err := n.Delete(t.Context(), at, 0); (err == nil) != there {
				t.Fatalf("delete %s: %v", at, err)
			}
			delete(model, at)
		case 5:
			before := len(model)
			maps.DeleteFunc(model, func(k, _ string) bool { return in(k, at) })
			if cleared, err := n.Clear(t.Context(), at); cleared != before-len(model) || err != nil {
				t.Fatalf("clear %s: %d, %v", at, cleared, err)
			}
		case 6:
			if v, err := n.Get(t.Context(), at); v != model[at] || (err == nil) != there {
				t.Fatalf("get %s: %q, %v", at, v, err)
			}
		default:
			root := roots[random.IntN(len(roots))]
			for _, e := range watches[root].take() {
				switch e.Kind {
				case Set:
					watched[root][e.Name] = e.Value
				case Deleted:
					delete(watched[root], e.Name)
				}
			}
			entries, err := n.List(t.Context(), root)
			want := maps.Clone(model)
			maps.DeleteFunc(want, func(k, _ string) bool { return !in(k, root) })
			got := map[string]string{}
			for _, e := range entries {
				got[e.Name] = e.Value
			}
			if err != nil || !maps.Equal(got, want) || !maps.Equal(watched[root], want) {
				t.Fatalf("%q has %v, has heard %v, want %v: %v", root, got, watched[root], want, err)
			}
		}
	}
}

func BenchmarkMemory_Add(b *testing.B) {
	n := NewMemory(Limits{})
	for i := range 10_000 {
		if _, err := n.Add(b.Context(), fmt.Sprintf("ana/pole/w/%d", i), "x", Options{}); err != nil {
			b.Fatal(err)
		}
	}
	for range 100 {
		w, at := n.watch("ana")
		defer n.unwatch(w, at)
	}
	i := 0
	for b.Loop() {
		i++
		if _, err := n.Add(b.Context(), fmt.Sprintf("ana/pole/w/%d", i%10_000), "y", Options{Replace: true, TTL: time.Hour}); err != nil {
			b.Fatal(err)
		}
	}
}
