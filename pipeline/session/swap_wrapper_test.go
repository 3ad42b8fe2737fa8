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

// A wrapper gives way to another one while the others and the episodes go on, and back.
func TestSwap_AWrapperGivesWayToAnother(t *testing.T) {
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
