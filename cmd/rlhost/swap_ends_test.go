package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// A reload that brings a rule which is fulfilled already is made, and the run ends by that rule. The client's reply
// says so, and so does the run's history.
func TestSwapEnds_ANewRuleThatIsFulfilledAlready(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	for _, c := range []struct{ name, rule, text, ended string }{
		{"steps", "env_steps=2048", "env_steps = 2048", "ended (env_steps) after"},
		{"return", "return=1", "return = 1", "target reached: mean return"},
		{"wall_time", `wall_time="1ms"`, `wall_time = "1ms"`, "ended (wall_time) after"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := w.of(t)
			j := w.host("cartpole.toml")
			j.until("the window is full", func(s *control.StatusReply) bool { return s.MeanReturn != nil && *s.MeanReturn > 1 })
			r := j.reload("cartpole.toml", "run.stop."+c.rule)
			if r.Outcome != control.Committed || len(r.Changes) != 2 || r.EnvStep == 0 {
				t.Errorf("%s", asJSON(r))
			}
			j.ends(0)
			j.says(regexp.QuoteMeta(c.ended))
			if c.name == "return" {
				j.says(`over [0-9]+ episodes \(wanted 1\)`)
			}
			if !strings.Contains(j.text(), c.text) {
				t.Errorf("pipeline.toml says\n%s, want %s", j.text(), c.text)
			}
			list := j.changes()
			if len(list) != 2 || list[1].Step != "committed" {
				t.Errorf("events %s", asJSON(list))
			}
			t.Logf("notes %q", r.Notes) // it may run for a moment when the client is answered
			j.nothingLeft()
		})
	}
}

// The other changes of a reload that brings such a rule are made before the run ends, and run when it is resumed.
func TestSwapEnds_OtherChangesAreMadeFirst(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.host("cartpole.toml")
	out, err := w.command("reload", "cartpole.toml", "--set", "run.stop.env_steps=2048", "--set", "env.cartpole.use=./"+newVersion).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "swapped 16/16 envs") || !strings.Contains(string(out), "reloaded cartpole.toml: ") {
		t.Errorf("%v: %s", err, out)
	}
	j.ends(0)
	j.says(`ended \(env_steps\) after`)
	again := w.host("--resume", "job", "--set", "run.stop.env_steps=500_000_000")
	again.runsFile(newVersion)
	again.goesOn()
	again.stop()
}
