package graph

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// policyFile holds the keys of a policy's table that belong to the pipeline, without env.
type policyFile struct {
	Of       string `toml:"of" doc:"Policy of the file whose versions this one acts with: a pool of opponents."`
	From     string `toml:"from" doc:"Run or weights file that gives the weights; this policy is not trained. A run gives the keys of its policy too, such as net, where this table has none."`
	Version  int    `toml:"version" doc:"Policy version of a fixed policy." range:"1 or more" default:""`
	Scripted bool   `toml:"scripted" doc:"A component of yours acts for it."`
	Group    string `toml:"group" doc:"Group of agents that it plays."`
}

var policyKeys = []string{"env", "of", "from", "version", "scripted", "group"}

// codeGiven is the code of tables of policies that are given and not learned.
const codeGiven = "E053"

// policyTables reads [policy.NAME].
func (k *checker) policyTables() {
	for _, n := range k.named("policy") {
		k.graph.Policies = append(k.graph.Policies, k.policyTable(n.node, n.name))
	}
	for i := range k.graph.Policies {
		if p := &k.graph.Policies[i]; p.Of != "" {
			k.share(p)
		}
	}
}

// takeKeysOfPolicies takes the keys of one policy out of [policy], where its name has been left out: tables such as net that have the name of a
// key and nothing that a policy must have. Other values are no tables, which is an error later.
func (k *checker) takeKeysOfPolicies(policies *node) {
	if policies == nil || k.parts.CheckPolicy == nil {
		return
	}
	var keys []string
	_ = k.parts.CheckPolicy(func(into any) error { // which reads nothing
		keys = table.Keys(into)
		return errDecode
	})
	for _, name := range keys {
		n := policies.at(name)
		if n == nil || n.kind != tableNode || n.at("env") != nil || n.at("of") != nil || n.at("from") != nil {
			continue
		}
		k.Add("E002", n.key, "write it into [policy.NAME], such as [policy.main]", "`%s` is a key of one policy, and [policy] holds policies by their names", name)
		policies.remove(name)
	}
}

// policyTable reads one policy.
func (k *checker) policyTable(n *node, name string) Policy {
	path := "policy." + name
	p := Policy{Name: name, table: n, shared: n, At: n.key}
	var f policyFile
	d := &tableDecoder{report: &k.Report, n: n.only(policyKeys[1:]), path: path}
	d.decode(&f) // errors have been noted
	k.atLeast(n, "version", f.Version, 1)
	p.Of, p.From, p.Version = f.Of, f.From, uint64(max(f.Version, 0))
	p.Group, p.Scripted = f.Group, f.Scripted
	k.checkGiven(&p)
	if n.at("of") != nil {
		return p
	}
	k.takeFromRun(n, name, p.From)
	p.Env = k.reference(n, "env")
	switch e := n.at("env"); {
	case e == nil:
		k.Add("E004", n.key, table.DidYouMean("", "%q", "declared", k.declared("env")), "`env` is missing in [%s]", path)
	case e.kind != scalarNode || p.Env == "":
		k.wrong(e, path+".env", "the name of an environment", "")
	default:
		p.At = e.val
	}
	stackFrames(n, k.root.at("env").at(p.Env).at("wrap"))
	if k.parts.CheckPolicy != nil {
		d := (&tableDecoder{report: &k.Report, n: n, path: path}).skipping(policyKeys...)
		k.configErrors(n, path, &d.faults, k.parts.CheckPolicy(d.note))
		p.config = d.into
	}
	(&placer{k}).declare(&p)
	return p
}

// KeyStack is the wrapper of an environment that says how many frames enter its policies, and their key for it.
const KeyStack = "frame_stack"

// stackFrames gives a policy without a number of frames the number of its environment's last wrapper for them.
func stackFrames(policy, wrap *node) {
	if wrap == nil || len(wrap.items) == 0 || policy.at(KeyStack) != nil {
		return
	}
	if frames := wrap.items[len(wrap.items)-1].at(KeyStack); frames != nil {
		policy.put(KeyStack, frames)
	}
}

// checkGiven checks the keys by which a policy is given.
func (k *checker) checkGiven(p *Policy) {
	of, from := p.table.at("of"), p.table.at("from")
	for _, n := range []*node{of, from} {
		if text, ok := n.text(); ok && text == "" {
			k.Add("E005", n.val, "leave it out", "an empty text names nothing")
		}
	}
	if v := p.table.at("version"); v != nil && of == nil && from == nil {
		k.Add(codeGiven, v.key, "add of = \"POLICY\" for a policy of this run, or from = \"RUN\" for another one", "`version` of [policy.%s] is nobody's", p.Name)
	}
	if s := p.table.at("scripted"); s != nil && from != nil {
		k.Add(codeGiven, s.key, "leave one of them out", "`scripted` next to `from`: rules act for [policy.%s], or weights do", p.Name)
	}
	if base, version, ok := VersionName(p.Name); ok && (p.Of != base || p.Version != version) {
		k.Add(codeGiven, p.table.key, fmt.Sprintf("write of = %q and version = %d, or choose another name", base, version),
			"%q is the name of version %d of policy %q, and the table says something else", p.Name, version, base)
	}
	for _, key := range p.table.names {
		if of != nil && key != "of" && key != "version" {
			k.Add(codeGiven, p.table.table[key].key, "leave it out, or leave out `of` and write a policy of its own",
				"`%s` next to `of`: everything else of [policy.%s] is that of [policy.%s]", key, p.Name, p.Of)
		}
	}
}

// share copies to a policy the settings of the other one that its key of names.
func (k *checker) share(p *Policy) {
	of := p.table.at("of")
	names := slices.DeleteFunc(slices.Clone(k.declared("policy")), func(name string) bool { return name == p.Name })
	other := k.graph.Policy(p.Of)
	switch {
	case k.bad["policy"] || k.broken["policy."+p.Of]:
	case p.Of == p.Name || other == nil:
		k.Add("E011", of.val, table.DidYouMean(p.Of, "%q", "declared", names), "policy %q is not declared", p.Of)
	case other.Role() != Learned:
		k.Add(codeGiven, of.val, "name a policy that is learned", "policy %q is not learned itself: it has no versions", p.Of)
	default:
		p.Env, p.shared, p.config, p.Plugin = other.Env, other.shared, other.config, other.Plugin
		if p.At == p.table.key {
			p.At = of.val
		}
	}
}

// lines returns the keys of a policy with all defaults.
func (p *Policy) lines() (lines []keyValue) {
	if p.Of == "" {
		lines = append(lines, keyValue{Key: "env", Value: quote(p.Env)})
	} else {
		lines = append(lines, keyValue{Key: "of", Value: quote(p.Of)})
	}
	if p.From != "" {
		lines = append(lines, keyValue{Key: "from", Value: quote(p.From)})
	}
	if p.Version > 0 {
		lines = append(lines, keyValue{Key: "version", Value: strconv.FormatUint(p.Version, 10)})
	}
	if p.Scripted {
		lines = append(lines, keyValue{Key: "scripted", Value: "true"})
	}
	if p.Group != "" {
		lines = append(lines, keyValue{Key: "group", Value: quote(p.Group)})
	}
	if p.Of == "" {
		lines = append(lines, p.sharedLines()...)
	}
	return lines
}

// GroupOf returns which group of agents a policy plays in its environment, whose description is given: its key's, else the group of
// the agents that rollouts let it play. A version of another policy plays the other's group. The error is a *table.Error.
func (g *Graph) GroupOf(p *Policy, spec *hostabi.EnvSpec) (group int, err error) {
	if other := g.Policy(p.Of); other != nil {
		p = other
	}
	names := make([]string, max(len(spec.Groups), 1))
	for i := range spec.Groups {
		names[i] = spec.Groups[i].Name
	}
	bad := func(reason, help string, args ...any) error {
		return &table.Error{Code: component.CodeAgents, Key: "group", Reason: fmt.Sprintf(reason, args...), Help: help}
	}
	all := strings.Join(names, ", ")
	if p.Group != "" {
		if group = slices.Index(names, p.Group); group < 0 {
			return 0, bad("is %q, and the groups of agents of %s are: %s", "name one of them", p.Group, spec.Name, all)
		}
		return group, nil
	}
	if len(names) == 1 {
		return 0, nil
	}
	plays := g.groupsPlayed(p, spec)
	switch len(plays) {
	case 0:
		return 0, bad("is missing: %s has the groups %s, and nothing says which one the policy plays",
			fmt.Sprintf("add group = %q, or name the policy in a rollout's policies = { %q = %q }", names[0], names[0]+"/*", p.Name), spec.Name, all)
	case 1:
		return plays[0], nil
	}
	return 0, bad("would be %s and %s, which observe and act differently", fmt.Sprintf("a policy for each group: policies = { %q = …, %q = … }", names[plays[0]]+"/*", names[plays[1]]+"/*"),
		names[plays[0]], names[plays[1]])
}

// groupsPlayed returns the groups of the agents that rollouts let a policy play, ascending.
func (g *Graph) groupsPlayed(p *Policy, spec *hostabi.EnvSpec) (groups []int) {
	for i := range g.Components {
		x := &g.Components[i]
		if x.Env != p.Env {
			continue
		}
		of, _ := x.Flow.PolicyOfAgents(spec)
		for group := range spec.Groups {
			first, agents := spec.AgentsOf(uint16(group))
			if slices.Contains(of[first:first+agents], p.Name) {
				groups = append(groups, group)
			}
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// sharedLines returns the keys of Decode, with all defaults.
func (p *Policy) sharedLines() []keyValue { return configLines(p.config, p.shared, policyKeys...) }

// meaning returns lines and, for a policy with Of, the settings of the other.
func (p *Policy) meaning() []keyValue {
	lines := p.lines()
	if p.Of != "" {
		lines = append(lines, p.sharedLines()...)
	}
	return lines
}

// Equal reports whether the tables of two policies mean the same.
func (p *Policy) Equal(other *Policy) bool { return slices.Equal(p.meaning(), other.meaning()) }

// Decode decodes the policy's table, or with Of the other's, without the keys that the graph has.
func (p *Policy) Decode(into any) error {
	return decoder(p.shared, "policy."+p.Name, policyKeys...)(into)
}

// Place returns the place of a dotted key of the policy, or of the policy itself if it does not have the key.
func (p *Policy) Place(key string) Span {
	if n := lookup(p.table, key); n != nil {
		return n.key
	}
	return p.At
}

// Plain returns the table of Decode as plain values, to be decoded elsewhere.
func (p *Policy) Plain() map[string]any { return table.Map(p.shared, policyKeys...) }

// SuffixTensors ends the names of files with the weights of one policy, as rlhost export writes them.
const SuffixTensors = ".safetensors"

// HelpStored lists the values of a policy's key from.
const HelpStored = "`rlhost runs` lists the runs; `rlhost export` writes .safetensors files"

// Stored returns the path that a policy's key from names: a file, whose name ends in SuffixTensors, or a run's folder, both
// relative to the pipeline's file; or a run by its name or NAME/NUMBER, relative to run.dir. Whether a run has such a number is not
// looked at. It is fs.ErrNotExist if there is nothing.
func (g *Graph) Stored(from string) (path string, err error) {
	path = from
	if !filepath.IsAbs(from) {
		path = filepath.Join(g.Dir, from)
	}
	if _, err := os.Stat(path); err == nil || strings.HasSuffix(from, SuffixTensors) {
		return path, err
	}
	name, _, _ := strings.Cut(filepath.ToSlash(from), "/")
	if _, err := os.Stat(filepath.Join(g.Run.Dir, name)); err == nil && validName(name) {
		return filepath.Join(g.Run.Dir, from), nil
	}
	return "", fmt.Errorf("%s: no such folder, and no run of that name in %s: %w", from, g.Run.Dir, fs.ErrNotExist)
}
