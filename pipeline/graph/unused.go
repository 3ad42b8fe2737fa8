package graph

import (
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/component"
)

// CodeEndless warns of a run that no rule ends.
const CodeEndless = "W107"

// CodeUnrecorded warns of episodes that are not recorded.
const CodeUnrecorded = "W109"

// idleChecker warns of what has no end and no use.
type idleChecker struct{ check *checker }

// endless warns of a run that nothing ends. A text that Expanded wrote was warned of when it was a file.
func (k *idleChecker) endless() {
	stop := &k.check.graph.Run.Stop
	if k.check.expanded || stop.Return != nil || stop.EnvSteps > 0 || stop.WallTime > 0 || len(stop.Policies) > 0 {
		return
	}
	at := k.check.root.at("run").key
	if n := lookup(k.check.root, "run.stop"); n != nil {
		at = n.key
	}
	k.check.Add(CodeEndless, at, "add a rule, such as stop = { env_steps = 500_000 }", "no rule of `stop` ends the run: it goes on until Ctrl-C")
}

// policies warns of policies that nothing names.
func (k *idleChecker) policies() {
	used := map[string]bool{k.check.graph.Run.Policy: true}
	for i := range k.check.graph.Components {
		x := &k.check.graph.Components[i]
		used[x.Policy] = true
		for _, p := range actingNames(x.table) {
			used[p.text] = true
		}
	}
	for i := range k.check.graph.Policies {
		if p := &k.check.graph.Policies[i]; used[p.Name] {
			used[p.Of] = true
		}
	}
	for i := range k.check.graph.Policies {
		p := &k.check.graph.Policies[i]
		if used[p.Name] || k.check.expanded {
			continue
		}
		k.check.Add("W108", p.table.key, k.helpIdle(p), "policy %q is not used: no component names it", p.Name)
	}
}

// unrecorded warns of environments whose episodes run.record leaves out: a recording is of this process alone.
func (k *idleChecker) unrecorded() {
	record := lookup(k.check.root, "run.record")
	if k.check.expanded || record == nil || k.check.graph.Run.Record == 0 {
		return
	}
	for i := range k.check.graph.Components {
		x := &k.check.graph.Components[i]
		rule := k.check.graph.HostRuleOf(x)
		why := ""
		switch {
		case x.Env == "" || x.Flow.Envs == 0:
		case x.Runtime != RuntimeBuiltin:
			why = "it runs in a process of its own"
		case rule != (HostRule{}):
			why = "`place` may put it on another host"
		}
		if why != "" {
			k.check.Add(CodeUnrecorded, record.val, "episodes of environments in this process alone can be replayed", "episodes of %q may not be recorded: %s", x.Name, why)
		}
	}
}

// unread warns of keys that the user has written for the host's network into the table of a policy that a plugin has its own for. A preset may
// set them for either.
func (k *idleChecker) unread() {
	for i := range k.check.graph.Policies {
		p := &k.check.graph.Policies[i]
		if k.check.expanded || k.check.graph.computes(p, k.check.parts) == nil {
			continue
		}
		for _, key := range k.check.parts.PolicyUnread {
			if n := lookup(p.table, key); n != nil && n.val.order() < firstPreset {
				k.check.Add("W115", n.key, "leave it out; `args` of the table are for the plugin's own network", "`%s` has no effect: plugin %q has a network of its own for policy %q", key, p.Plugin, p.Name)
			}
		}
	}
}

// helpIdle says how a policy acts.
func (k *idleChecker) helpIdle(p *Policy) string {
	i := slices.IndexFunc(k.check.graph.Components, func(x Component) bool {
		return slices.ContainsFunc(x.Manifest.Signals, func(port component.Port) bool { return port.Payload == component.PayloadRequest })
	})
	if i < 0 {
		return "leave it out"
	}
	return fmt.Sprintf("leave it out, or let it act: policies = { \"GROUP/0\" = %q } in [component.%s]", p.Name, k.check.graph.Components[i].Name)
}
