package ctest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// A component in C asks others, and no more than it may.
func TestAsks_ComponentsInCAsk(t *testing.T) {
	program := spawn.Program{Name: "asker", Path: Build(t, SanitizedPlugin, "../testdata/asker.c")}
	c, err := proxy.New(context.Background(), newRuntime(t), program, "asker")
	if err != nil {
		t.Fatal(err)
	}
	var open []func(json.RawMessage, error) // of the component's loop
	s := plugintest.NewStage(t, c, plugintest.StageOptions{Name: "asker", AskOther: func(name string, args json.RawMessage, within time.Duration, answer func(json.RawMessage, error)) {
		switch name {
		case "total":
			open = append(open, answer)
		case "burst":
			for _, answer := range open {
				answer(json.RawMessage("1"), nil)
			}
			open = nil
			answer(nil, &component.Raised{Type: "panic", Text: fmt.Sprintf("%s within %v", args, within)})
		default:
			answer(args, nil)
		}
	}})
	carry := func(name, args string) string {
		errand, _ := json.Marshal(map[string]any{"ask": name, "args": args, "within_ms": 1500}) // texts and a number
		got := ask(t, s, "carry", string(errand), soon)
		raised, _, _ := strings.Cut(got, "|asker.c:")
		return raised
	}
	last := func(want string) {
		t.Helper()
		s.Until(want, func() bool { return ask(t, s, "last", "{}", soon) == want })
	}
	fill := func(from, to int) {
		t.Helper()
		for n := from; n <= to; n++ {
			if got := carry("total", "{}"); got != fmt.Sprint(n) {
				t.Fatalf("question %d: %s", n, got)
			}
		}
	}
	fill(1, 255)
	for _, args := range []string{`[]`, `{"a"`, ``, `1`} {
		if got, want := carry("total", args), "AskError|invalid"; got != want {
			t.Errorf("total(%s): %s, want %s", args, got, want)
		}
	}
	if got := carry("burst", `{"what":1}`); got != "256" {
		t.Errorf("question 256: %s", got)
	}
	last(`[256,"E122 panic: {\"what\":1} within 1.5s"]`)
	fill(257, 512)
	if got, want := carry("total", "{}"), "AskError|none is free"; got != want {
		t.Errorf("257 questions have no answer: %s, want %s", got, want)
	}
}
