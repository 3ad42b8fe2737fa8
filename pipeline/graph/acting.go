package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
)

// Learns reports whether the component makes versions of its policy from datasets.
func (x *Component) Learns() bool { return x.Policy != "" && x.takes(component.PayloadDataset) }

// Keeps reports whether blocks of the component's steps keep the earlier rows that a policy needs: it is made for the same
// environment, or acts.
func (x *Component) Keeps(p *Policy) bool { return x.Flow.Keeps(x.Env, p.Name, p.Env) }

// Report notes an error of a key of the component's table that was found after it was read.
func (x *Component) Report(c *Report, e *component.ConfigError) {
	at := x.table.key
	if n := x.keyOf(e.Key); n != nil {
		at = n.key
	}
	c.Add(codeOf(e), at, e.Help, "component %q: `%s` %s", x.Name, e.Key, e.Reason)
}

// keyOf returns a key of the component's table, or of a table in it: the rest of the text is one key there, whatever it has in it.
func (x *Component) keyOf(key string) *node {
	first, rest, nested := strings.Cut(key, ".")
	n := x.key(first)
	if inner := n.at(rest); nested && inner != nil {
		return inner
	}
	return n
}

// takes reports whether a component has a slot for a payload.
func (x *Component) takes(payload string) bool { return hasPayload(x.Manifest.Slots, payload) }

// sends reports whether a component has a signal with a payload.
func (x *Component) sends(payload string) bool { return hasPayload(x.Manifest.Signals, payload) }

func hasPayload(ports []component.Port, payload string) bool {
	return slices.ContainsFunc(ports, func(p component.Port) bool { return p.Payload == payload })
}

// codeActing is the code of policies that act and are not served, learned or given.
const codeActing = "E054"

// actingChecker checks that the policies that act are declared, served, and learned or given.
type actingChecker struct {
	check     *checker
	learns    bool            // the graph has a learner
	gathering map[string]bool // components that gather rows of rollouts which name policies
}

func (k *actingChecker) acting() {
	k.learns = slices.ContainsFunc(k.check.graph.Components, func(x Component) bool { return x.Learns() })
	for i := range k.check.graph.Components {
		x := &k.check.graph.Components[i]
		k.learnsGiven(x)
		k.learnsElsewhere(x)
		switch n := len(x.Flow.Acting()); {
		case n > trajectory.MaxPolicies:
			k.check.Add(codeActing, x.table.key, "", "%d policies act in %q, at most %d can", n, x.Name, trajectory.MaxPolicies)
		case k.check.bad["wire"] || k.check.unsure[x.Name] || len(k.check.broken) > 0: // what is broken may be what serves it
		case n == 0:
			k.answeredByOne(x)
		case k.declaredAll(x):
			k.answered(x)
			k.gathered(x)
		}
	}
	for i := range k.check.graph.Components {
		k.gathersNothing(&k.check.graph.Components[i])
	}
	k.oneLearnerEach()
}

// CodeWhich is the code of pipelines that do not say which policy is meant, or let several learn the same one.
const CodeWhich = "E043"

// oneLearnerEach rejects a policy that several instances learn: each would have its own weights.
func (k *actingChecker) oneLearnerEach() {
	by := map[string]*Component{}
	for i := range k.check.graph.Components {
		x := &k.check.graph.Components[i]
		if !x.Learns() {
			continue
		}
		if x.Count > 1 {
			at := x.policyAt()
			if n := x.key("count"); n != nil {
				at = n.val
			}
			k.check.Add(CodeWhich, at, "leave count out; learners = 2 in its table has two divide each minibatch", "component %q has %d instances, which would learn policy %q apart", x.Name, x.Count, x.Policy)
		}
		if other := by[x.Policy]; other != nil {
			k.check.Add(CodeWhich, x.policyAt(), "give each a policy of its own, or leave one out", "components %q and %q both learn policy %q", other.Name, x.Name, x.Policy)
		}
		by[x.Policy] = x
	}
}

// gathersNothing rejects a component that gathers rows of a policy and gets none, where others do.
func (k *actingChecker) gathersNothing(x *Component) {
	if len(k.gathering) > 0 && x.Policy != "" && x.sends(component.PayloadDataset) && !k.gathering[x.Name] {
		k.check.Add(codeActing, x.policyAt(), fmt.Sprintf("wire the trajectories of a rollout in which %q acts to %q", x.Policy, x.Name),
			"%q gathers rows of policy %q, and gets none", x.Name, x.Policy)
	}
}

// policyAt is where a component's table names its policy.
func (x *Component) policyAt() Span {
	if n := x.key("policy"); n != nil {
		return n.val
	}
	return x.table.key
}

// blamed is where a component names its policy or, if a preset does, where a rollout says who acts.
func (x *Component) blamed(rollout *Component) Span {
	at := x.policyAt()
	if n := rollout.key(keyPolicies); n != nil && at.order() >= firstPreset {
		return n.key
	}
	return at
}

// learnsGiven rejects learners of policies that are given.
func (k *actingChecker) learnsGiven(x *Component) {
	p := k.check.graph.Policy(x.Policy)
	if p == nil || p.Role() == Learned || !x.Learns() {
		return
	}
	key := "from"
	switch {
	case p.Of != "":
		key = "of"
	case p.Scripted:
		key = "scripted"
	}
	k.check.Add(codeGiven, x.policyAt(), "leave the learner out, or `"+key+"` in [policy."+p.Name+"]",
		"policy %q is given by `%s`: nobody learns it", p.Name, key)
}

// learnsElsewhere rejects learners of this program for policies that a plugin computes: learning has other bits here.
func (k *actingChecker) learnsElsewhere(x *Component) {
	p := k.check.graph.Policy(x.Policy)
	if p == nil || p.Plugin == "" || x.Plugin != "" || x.Module != nil || !x.Learns() {
		return
	}
	at := x.policyAt()
	if n := x.key("runtime"); n != nil {
		at = n.val
	}
	k.check.Add("E005", at, fmt.Sprintf(`leave out runtime, or write %s = "cpu" in [policy.%s]`, keyBackend, p.Name),
		"%q learns in this program, and policy %q is learned by the plugin %q alone", x.Name, p.Name, p.Plugin)
}

// declaredAll checks that the policies that act for a component are declared.
func (k *actingChecker) declaredAll(x *Component) bool {
	ok := true
	for _, p := range actingNames(x.table) {
		if k.check.graph.Policy(p.text) != nil || k.check.bad["policy"] || k.check.broken["policy."+p.text] {
			continue
		}
		ok = false
		help := "declare it: [policy." + quoteKey(p.text) + "]"
		if near, found := table.Nearest(p.text, k.check.declared("policy")); found {
			help = suggest(near)
		}
		if of, _, version := strings.Cut(p.text, "@"); version {
			help = fmt.Sprintf("write a policy version after the @: %s@12", of)
		}
		k.check.Add("E011", p.at, help, "policy %q is not declared", p.text)
	}
	return ok
}

// answered checks that each policy that acts has one component that answers x for it, which gets its weights.
func (k *actingChecker) answered(x *Component) {
	acting := x.Flow.Acting()
	by := map[string]*Component{}
	for _, w := range k.behind(x, component.PayloadRequest) {
		to := k.check.graph.Component(w.To)
		switch {
		case to.Policy == "":
		case !slices.Contains(acting, to.Policy):
			k.check.Add(codeActing, to.blamed(x), "name one of those that do: "+strings.Join(acting, ", "),
				"%q answers %q for policy %q, which does not act there", to.Name, x.Name, to.Policy)
		case by[to.Policy] != nil:
			k.check.Add(codeActing, to.policyAt(), "leave one of them out", "%q and %q both answer %q for policy %q", by[to.Policy].Name, to.Name, x.Name, to.Policy)
		default:
			by[to.Policy] = to
			k.sharing(w, to, acting)
			k.weighed(x, to)
		}
	}
	for _, p := range actingNames(x.table) {
		if by[p.text] == nil && k.check.graph.Policy(p.text) != nil {
			k.check.Add(codeActing, p.at, fmt.Sprintf("wire %q to an inference with policy = %q, and back", x.Name, p.text),
				"policy %q acts in %q, and no inference answers for it", p.text, x.Name)
		}
	}
}

// answeredByOne checks that all who answer a component that names no policies do so for the same one.
func (k *actingChecker) answeredByOne(x *Component) {
	var first *Component
	for _, w := range k.behind(x, component.PayloadRequest) {
		to := k.check.graph.Component(w.To)
		if to.Policy != "" && !k.learns {
			k.weighed(x, to)
		}
		switch {
		case to.Policy == "":
		case first == nil:
			first = to
		case to.Policy != first.Policy:
			k.check.Add(codeActing, to.policyAt(), fmt.Sprintf("say it: policies = { \"GROUP/0\" = %q, \"GROUP/1\" = %q } in [component.%s]", first.Policy, to.Policy, x.Name),
				"%q answers %q for policy %q and %q for %q, and nothing says which plays which agents", first.Name, x.Name, first.Policy, to.Name, to.Policy)
		}
	}
}

// behind returns the wires by which a component's messages with a payload reach others.
func (k *actingChecker) behind(x *Component, payload string) (list []*Wire) {
	for i := range k.check.graph.Wires {
		if w := &k.check.graph.Wires[i]; w.From == x.Name && w.Payload == payload {
			list = append(list, w)
		}
	}
	return list
}

// Shared reports whether the instances of a component share the messages of a wire to it although other components get them
// too: where several policies act, each message goes to one instance of each policy.
func Shared(w *Wire, from, to *Component) bool {
	return w.Mode == bus.All && to.Count > 1 && !w.Paired && len(from.Flow.Acting()) > 1 && (w.Payload == component.PayloadRequest || w.Payload == component.PayloadTrajectory) &&
		to.Policy != ""
}

// sharing checks that a wire brings each message to one instance of a component, although others get it too.
func (k *actingChecker) sharing(w *Wire, to *Component, acting []string) {
	others := slices.ContainsFunc(k.check.graph.Wires, func(o Wire) bool {
		return o.From == w.From && o.Signal == w.Signal && o.To != w.To && o.Mode == bus.Queue
	})
	switch {
	case len(acting) < 2:
	case w.Mode == bus.Queue && others:
		k.check.Add(codeActing, w.SlotAt, `write mode = "all"`,
			"%q shares the messages of %q with what other policies have there: each goes to one of them", to.Name, component.Qualified(w.From, w.Signal))
	case w.Mode != bus.Queue && to.Count > 1 && !w.Paired && !Shared(w, k.check.graph.Component(w.From), to):
		at := to.policyAt()
		if n := to.key("count"); n != nil {
			at = n.val
		}
		k.check.Add(codeActing, at, `write mode = "all", with which they share the messages; or use count = 1`, "each of the %d instances of %q gets all messages of %q: where several policies act, each has one",
			to.Count, to.Name, component.Qualified(w.From, w.Signal))
	}
}

// weighed checks that somebody learns the policy of a component that acts, or gives its weights.
func (k *actingChecker) weighed(x, acts *Component) {
	p := k.check.graph.Policy(acts.Policy)
	if p == nil || p.Role() == Rules || !acts.takes(component.PayloadWeights) {
		return
	}
	from := k.weightsOf(acts, p)
	if from == nil {
		help := fmt.Sprintf("add a component of the kind frozen with policy = %q, and wire its weights to %q", p.Name, acts.Name)
		switch p.Role() {
		case Learned:
			help = fmt.Sprintf("add a learner with policy = %q and wire its weights to %q; or say in [policy.%s] what they are: of or from", p.Name, acts.Name, p.Name)
		case Pool:
			help = strings.Replace(help, KindFrozen, KindPool, 1)
		}
		k.check.Add(codeActing, acts.policyAt(), help, "policy %q acts in %q, and nobody learns it and nobody loads it", p.Name, x.Name)
		return
	}
	if p.Role() == Pool && k.weightsOf(from, k.check.graph.Policy(p.Of)) == nil {
		k.check.Add(codeActing, p.Place("of"), fmt.Sprintf("let %q act and be learned; or name one of its versions: version = 12", p.Of),
			"policy %q acts with versions of %q, and nobody learns that", p.Name, p.Of)
	}
}

// weightsOf returns the component that sends another one the weights of a policy, or nil. Weights of a policy that is not given
// come from its learner.
func (k *actingChecker) weightsOf(to *Component, p *Policy) *Component {
	for i := range k.check.graph.Wires {
		w := &k.check.graph.Wires[i]
		if w.To != to.Name || w.Payload != component.PayloadWeights {
			continue
		}
		if from := k.check.graph.Component(w.From); from.Policy == p.Name && from.Learns() == (p.Role() == Learned) {
			return from
		}
	}
	return nil
}

// gathered checks the components that gather x's rows: where several policies act, each gathers one policy's, for a learner of the same policy.
func (k *actingChecker) gathered(x *Component) {
	acting := x.Flow.Acting()
	seen := map[string]bool{}
	for queue := []*Component{x}; len(queue) > 0; queue = queue[1:] {
		for _, w := range k.behind(queue[0], component.PayloadTrajectory) {
			to := k.check.graph.Component(w.To)
			if seen[to.Name] {
				continue
			}
			seen[to.Name] = true
			if to.sends(component.PayloadDataset) {
				k.gathering[to.Name] = true
				k.sharing(w, to, acting)
				k.gathers(x, to)
				continue
			}
			queue = append(queue, to)
		}
	}
}

// gathers checks a component that makes datasets of a rollout's trajectories.
func (k *actingChecker) gathers(rollout, x *Component) {
	acting := rollout.Flow.Acting()
	help := "name one of those that act: " + strings.Join(acting, ", ")
	switch {
	case x.Policy == "" && len(acting) > 1:
		k.check.Add(codeActing, x.table.key, fmt.Sprintf("add policy = %q to [component.%s]", acting[0], x.Name), "several policies act, and %q does not say whose rows it gathers", x.Name)
		return
	case x.Policy != "" && !slices.Contains(acting, x.Policy):
		k.check.Add(codeActing, x.blamed(rollout), help, "%q gathers rows of policy %q, which does not act there", x.Name, x.Policy)
		return
	}
	of := x.Policy
	if of == "" {
		of = acting[0]
	}
	for _, w := range k.behind(x, component.PayloadDataset) {
		if to := k.check.graph.Component(w.To); to.Learns() && to.Policy != of {
			k.check.Add(codeActing, to.policyAt(), fmt.Sprintf("give each learner a batcher: one with policy = %q", to.Policy),
				"%q learns policy %q, and %q gathers rows of %q", to.Name, to.Policy, x.Name, of)
		}
	}
}
