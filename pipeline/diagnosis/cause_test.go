package diagnosis

import (
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

// A stall without a full wire has a cause too: a component that owes an answer, an answer that the host refused, a component that lets
// no trajectory through, or, if nothing else is known, the message waited for.
func TestCause_NamesWhoOwesAndWhoSwallows(t *testing.T) {
	now := time.Unix(1000, 0)
	took := func(ago time.Duration) Record { return Record{TookAt: now.Add(-ago)} }
	run := func(list ...*Instance) *Run {
		for _, x := range list {
			x.State = control.Running
		}
		return &Run{At: now, Begun: true, Instances: list}
	}
	owes := func(d time.Duration, refused string) *Instance {
		x := &Instance{Name: "actor", Record: took(time.Second), Debts: []Debt{{"rollout", "rollout.obs_ready", d}}}
		x.Process = component.Process{State: component.ProcessRunning, Refused: refused}
		return x
	}
	passes := func(learned time.Duration) *Run {
		x := &Instance{Name: "chooser", Record: took(0)}
		for i := range 13 {
			x.Pass(now.Add(time.Duration(i-12)*time.Second), uint64(100*i), 0)
		}
		return run(x, &Instance{Name: "learner", Learns: true, Record: took(learned)})
	}
	cases := []struct {
		what string
		run  *Run
		want string
	}{
		{"an answer that is owed for long", run(owes(12*time.Second, "")), "actor owes rollout an answer to rollout.obs_ready for 12 s"},
		{"one that was refused", run(owes(12*time.Second, "the host refused it")), "actor owes rollout an answer to rollout.obs_ready for 12 s; the host refused it"},
		{"an answer that is owed for a moment", run(owes(time.Second, "")), ""},
		{"trajectories that are not sent on", passes(time.Minute), "chooser has taken 1200 trajectories for 12 s and sent none on"},
		{"the same while something is learned", passes(time.Second), ""},
	}
	for _, c := range cases {
		if got := c.run.Cause(); got != c.want {
			t.Errorf("%s: cause %q, want %q", c.what, got, c.want)
		}
	}
}
