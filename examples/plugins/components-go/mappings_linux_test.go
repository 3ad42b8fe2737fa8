package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// A process that runs the default graph, with modules as components and as wrappers, has so few mappings, its own included, that a hundred
// times as many are within the system's limit for a process.
func TestComponents_AHundredGraphsAreWithinTheSystemsMappings(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		t.Fatal(err)
	}
	limit, err := strconv.Atoi(string(bytes.TrimSpace(text)))
	if err != nil {
		t.Fatal(err)
	}
	module := func(name string) string { return testkit.Committed(t, name) }
	keys := fmt.Sprintf("runtime = \"wasm\"\nuse = %q\ngrants = [\"metric\"]", module("shaper"))
	wrapped := fmt.Sprintf("env.cartpole.wrap=[{ time_limit = 200 }, { use = %q }, { use = %q }]", module("center"), module("flicker"))
	none := "preset = \"ppo\"\nenv = \"cartpole\""
	for _, c := range []struct {
		name, text string
		sets       []string
	}{
		{"default", "rlhost = 1\n[run]\nname = \"plain\"\nevaluation = { episodes = 1 }\n[env.cartpole]\nuse = \"cartpole@1\"\n[train]\n" + none, nil},
		{"with a shaper", fmt.Sprintf(shaped, keys), nil},
		{"with a shaper and two wrappers", fmt.Sprintf(shaped, keys), []string{wrapped}},
		{"with a logger", fmt.Sprintf(logged, fmt.Sprintf("runtime = \"wasm\"\nuse = %q\ngrants = [\"log\", \"metric\"]", module("episodes"))), nil},
	} {
		for _, mode := range []string{"sync", "async"} {
			n := mappingsOf(t, c.text, append(c.sets, "train.mode="+mode, "run.stop.env_steps=8192", "run.dir="+t.TempDir()))
			t.Logf("%s, %s: %d mappings", c.name, mode, n)
			if 100*n > limit {
				t.Errorf("%s, %s: a hundred times %d mappings, the system gives %d", c.name, mode, n, limit)
			}
		}
	}
}

// mappingsOf returns how many mappings there are at the last dataset boundary of a run.
func mappingsOf(t *testing.T, text string, sets []string) (n int) {
	t.Helper()
	parts, engines := builtin.New(builtin.Options{})
	defer engines.Close()
	g, err := graph.Parse("run.toml", []byte(text), graph.ParseOptions{Parts: parts, Sets: sets})
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Begin(t.Context(), session.Options{Parts: parts, Graph: g, Observe: func(e session.Event) {
		if _, ok := e.(session.Saved); ok {
			n = mappings(t)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Run(t.Context())
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Error("there was no boundary to count at")
	}
	return n
}

func mappings(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Error(err)
	}
	return bytes.Count(text, []byte("\n"))
}
