package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
)

// A wrapper is replaced by another and back, while the others and the episodes continue.
func TestSwap_AWrapperIsReplacedByAnother(t *testing.T) {
	r := begin(t, `env.cartpole.wrap=[{ time_limit = 400 }, { reward_scale = 0.5 }]`)
	r.learns()
	wrappers := func() []env.Wrapper { return r.pipeline.Graph().Env("cartpole").Table.Wrap }
	var reply control.SwapReply
	r.mustDo(control.VerbSwap, control.SwapRequest{Component: "rollout.wrap[1]", File: "{ reward_clip = 0.25 }"}, &reply)
	if reply.Outcome != control.Committed || reply.Component != "rollout" || reply.Envs != 8 || reply.Kept != 8 || reply.Dropped != 0 {
		t.Errorf("%+v", reply)
	}
	if !slices.ContainsFunc(reply.Notes, func(n string) bool {
		return strings.Contains(n, "wrap[1] of env \"cartpole\": { reward_scale = 0.5 } → { reward_clip = 0.25 }")
	}) {
		t.Errorf("the reply does not say what has changed: %q", reply.Notes)
	}
	if list := wrappers(); len(list) != 2 || list[0]["time_limit"] != int64(400) || list[1]["reward_clip"] != 0.25 {
		t.Errorf("the wrappers are %v", list)
	}
	if text, err := os.ReadFile(filepath.Join(r.run.Dir, "pipeline.toml")); err != nil || !strings.Contains(string(text), "reward_clip = 0.25") {
		t.Errorf("what a resumed run would read: %v\n%s", err, text)
	}
	r.mustDo(control.VerbRollback, control.RollbackRequest{Component: "rollout.wrap[1]"}, &reply)
	if list := wrappers(); reply.Outcome != control.RolledBack || reply.Kept != 8 || list[1]["reward_scale"] != 0.5 {
		t.Errorf("back: %+v, wrappers %v", reply, list)
	}
	r.learns()
}

func TestSwap_SaysWhyAWrapperIsRefused(t *testing.T) {
	r := begin(t, `env.cartpole.wrap=[{ time_limit = 400 }]`)
	before := r.pipeline.Graph().Expanded()
	for want, q := range map[string]control.SwapRequest{
		`env "cartpole" has 1 wrappers: wrap[1] is not one of them`: {Component: "rollout.wrap[1]", File: "{ time_limit = 3 }"},
		`learner runs no environments`:                              {Component: "learner.wrap[0]", File: "{ time_limit = 3 }"},
		`there is no component "walker"`:                            {Component: "walker.wrap[0]", File: "{ time_limit = 3 }"},
		`is not the table of one wrapper`:                           {Component: "rollout.wrap[0]", File: "{ time_limit = 3 }, { reward_scale = 2 }"},
		"v2 is not the table of a wrapper":                          {Component: "rollout.wrap[0]", File: "/v2"},
		"is a module, and this program runs none":                   {Component: "rollout.wrap[0]", File: "/v2.wasm"},
		"`time_limit` is 0":                                         {Component: "rollout.wrap[0]", File: "{ time_limit = 0 }"},
		"is not a value":                                            {Component: "rollout.wrap[0]", File: "{ time_limit"},
		"is not a wrapper":                                          {Component: "rollout.wrap[0]", File: "{ time_limt = 3 }"},
		"none of its actions is a Box":                              {Component: "rollout.wrap[0]", File: "{ clip_action = true }"},
	} {
		err := r.do(t.Context(), control.VerbSwap, q, nil, nil)
		var e *control.Error
		if !errors.As(err, &e) || !strings.Contains(e.Reason+e.Problems, want) {
			t.Errorf("%s %s: %v, want %q", q.Component, q.File, err, want)
		}
	}
	if r.pipeline.Graph().Expanded() != before {
		t.Error("something has changed")
	}
}

// A rollback of a wrapper brings back the table that was at that place, whatever has been changed at others since, and in another
// process too.
func TestRollback_HonoursThePlaceOfAWrapper(t *testing.T) {
	r := begin(t, `env.cartpole.wrap=[{ time_limit = 400 }, { reward_scale = 0.5 }]`)
	r.learns()
	swap := func(component, file string) {
		t.Helper()
		r.mustDo(control.VerbSwap, control.SwapRequest{Component: component, File: file}, nil)
	}
	back := func(component string) error {
		return r.do(t.Context(), control.VerbRollback, control.RollbackRequest{Component: component}, nil, nil)
	}
	are := func(want string) {
		t.Helper()
		if got := env.WrapText(r.pipeline.Graph().Env("cartpole").Table.Wrap); got != want {
			t.Errorf("the wrappers are %s, want %s", got, want)
		}
	}
	if err := back("rollout.wrap[0]"); code(err) != control.CodeRefused || !strings.Contains(err.Error(), "rollout.wrap[0] has no previous version") {
		t.Errorf("of one that was never changed: %v", err)
	}
	swap("rollout.wrap[0]", "{ time_limit = 300 }")
	swap("rollout.wrap[1]", "{ reward_scale = 0.25 }")
	for _, place := range []string{"2", "9", "99999999999999999999999"} {
		if err := back("rollout.wrap[" + place + "]"); code(err) != control.CodeUnknown {
			t.Errorf("wrap[%s] of two: %v", place, err)
		}
	}
	are(`[{ time_limit = 300 }, { reward_scale = 0.25 }]`)
	for _, want := range []string{`[{ time_limit = 400 }, { reward_scale = 0.25 }]`, `[{ time_limit = 300 }, { reward_scale = 0.25 }]`} {
		if err := back("rollout.wrap[0]"); err != nil {
			t.Fatal(err)
		}
		are(want)
	}
	again := newHistory(r.commands.job.history.live)
	if err := again.recall(); err != nil {
		t.Fatal(err)
	}
	for place, want := range []string{"{ time_limit = 400 }", "{ reward_scale = 0.5 }"} {
		if p := again.before(wrapperName("rollout", place)); p == nil || p.wrap.Old != want {
			t.Errorf("another process would bring back %+v at place %d, want %s", p, place, want)
		}
	}
	r.mustDo(control.VerbReload, control.ReloadRequest{File: "/pipeline.toml", Source: file,
		Sets: []string{`env.cartpole.use="` + module(t, "c") + `"`, `env.cartpole.wrap=[{ reward_clip = 1.0 }, { time_limit = 300 }, { reward_scale = 0.25 }]`}}, nil)
	if err := back("rollout.wrap[0]"); code(err) != control.CodeRefused || !strings.Contains(err.Error(), "the list of wrappers has changed since") {
		t.Errorf("after another list: %v", err)
	}
}

// The last good version is the previous one, never one that has failed.
func TestRollback_NeverLeadsToAVersionThatHasFailed(t *testing.T) {
	r := begin(t, `env.cartpole.wrap=[{ time_limit = 400 }]`)
	r.learns()
	limit := func() any { return r.pipeline.Graph().Env("cartpole").Table.Wrap[0]["time_limit"] }
	watched := 60.0
	fail := func(file string) {
		t.Helper()
		before := limit()
		r.mustDo(control.VerbSwap, control.SwapRequest{Component: "rollout.wrap[0]", File: file, Probation: &watched}, nil)
		r.commands.job.failed(failure{number: r.commands.job.history.last, component: "rollout", fault: errors.New("it fails")})
		r.mustDo(control.VerbStatus, control.StatusRequest{Wait: true}, nil)
		if limit() != before {
			t.Fatalf("the limit is %v after a fallback, want %v", limit(), before)
		}
	}
	for _, name := range []string{"rollout", "rollout.wrap[0]"} {
		fail("{ time_limit = 100 }")
		err := r.do(t.Context(), control.VerbRollback, control.RollbackRequest{Component: name}, nil, nil)
		if code(err) != control.CodeRefused || limit() != int64(400) {
			t.Errorf("rollback %s: %v, and the limit is %v", name, err, limit())
		}
	}
	for _, name := range []string{"rollout", "rollout.wrap[0]"} {
		r.mustDo(control.VerbSwap, control.SwapRequest{Component: "rollout.wrap[0]", File: "{ time_limit = 300 }"}, nil)
		fail("{ time_limit = 200 }")
		again := newHistory(r.commands.job.history.live)
		if err := again.recall(); err != nil || again.before(name) == nil || !strings.Contains(strings.Join(again.before("rollout").back, " "), "time_limit = 400") {
			t.Errorf("another process would bring back %+v of %s: %v", again.before(name), name, err)
		}
		r.mustDo(control.VerbRollback, control.RollbackRequest{Component: name}, nil)
		if limit() != int64(400) {
			t.Errorf("rollback %s: the limit is %v, want that of the last good version", name, limit())
		}
	}
}
