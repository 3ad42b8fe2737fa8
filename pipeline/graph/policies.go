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

// policyFile holds the keys of a policy's table that belong to the pipeline, but for env.
type policyFile struct {
	Of       string `toml:"of"`
	From     string `toml:"from"`
	Version  int    `toml:"version"`
	Scripted bool   `toml:"scripted"`
	Group    string `toml:"group"`
}

var policyKeys = []string{"env", "of", "from", "version", "scripted", "group"}

// codeGiven is the code of tables of policies that are given and not learned.
const codeGiven = "E053"

// policyTables reads [policy.NAME].
func (c *checker) policyTables() {
	for _, n := range c.named("policy") {
		c.graph.Policies = append(c.graph.Policies, c.policyTable(n.node, n.name))
	}
	for i := range c.graph.Policies {
		if p := &c.graph.Policies[i]; p.Of != "" {
			c.share(p)
		}
	}
}

// takeKeysOfPolicies takes the keys of one policy out of [policy], where its name has been left out: tables such as net that have the name of a
// key and nothing that a policy must have. Other values are no tables, which is an error later.
func (c *checker) takeKeysOfPolicies(policies *node) {
	if policies == nil || c.parts.CheckPolicy == nil {
		return
	}
	var keys []string
	_ = c.parts.CheckPolicy(func(into any) error { // which reads nothing
		keys = table.Keys(into)
		return errDecode
	})
	for _, name := range keys {
		n := policies.at(name)
		if n == nil || n.kind != tableNode || n.at("env") != nil || n.at("of") != nil || n.at("from") != nil {
			continue
		}
		c.Add("E002", n.key, "write it into [policy.NAME], such as [policy.main]", "`%s` is a key of one policy, and [policy] holds policies by their names", name)
		policies.remove(name)
	}
}

// policyTable reads one policy.
func (c *checker) policyTable(n *node, name string) Policy {
	path := "policy." + name
	p := Policy{Name: name, table: n, shared: n, At: n.key}
	var f policyFile
	d := &tableDecoder{c: &c.Report, n: n.only(policyKeys[1:]), path: path}
	d.decode(&f) // what is wrong has been noted
	c.atLeast(n, "version", f.Version, 1)
	p.Of, p.From, p.Version = f.Of, f.From, uint64(max(f.Version, 0))
	p.Group, p.Scripted = f.Group, f.Scripted
	c.checkGiven(&p)
	if n.at("of") != nil {
		return p
	}
	p.Env = c.reference(n, "env")
	switch e := n.at("env"); {
	case e == nil:
		c.Add("E004", n.key, table.DidYouMean("", "%q", "declared", c.declared("env")), "`env` is missing in [%s]", path)
	case e.kind != scalarNode || p.Env == "":
		c.wrong(e, path+".env", "the name of an environment", "")
	default:
		p.At = e.val
	}
	stackFrames(n, c.root.at("env").at(p.Env).at("wrap"))
	if c.parts.CheckPolicy != nil {
		d := (&tableDecoder{c: &c.Report, n: n, path: path}).skipping(policyKeys...)
		c.configErrors(n, path, c.parts.CheckPolicy(d.decode))
		p.config = d.into
	}
	(&placer{c}).declare(&p)
	return p
}

// KeyStack is the wrapper of an environment that says how many frames enter its policies, and their key for it.
const KeyStack = "frame_stack"

// stackFrames gives a policy that does not say how many frames enter it what the last of its environment's wrappers says.
func stackFrames(policy, wrap *node) {
	if wrap == nil || len(wrap.items) == 0 || policy.at(KeyStack) != nil {
		return
	}
	if frames := wrap.items[len(wrap.items)-1].at(KeyStack); frames != nil {
		policy.put(KeyStack, frames)
	}
}

// checkGiven checks the keys by which a policy is given.
func (c *checker) checkGiven(p *Policy) {
	of, from := p.table.at("of"), p.table.at("from")
	for _, n := range []*node{of, from} {
		if text, ok := n.text(); ok && text == "" {
			c.Add("E005", n.val, "leave it out", "an empty text names nothing")
		}
	}
	if v := p.table.at("version"); v != nil && of == nil && from == nil {
		c.Add(codeGiven, v.key, "add of = \"POLICY\" for a policy of this run, or from = \"RUN\" for another one", "`version` of [policy.%s] is nobody's", p.Name)
	}
	if s := p.table.at("scripted"); s != nil && from != nil {
		c.Add(codeGiven, s.key, "leave one of them out", "`scripted` beside `from`: rules act for [policy.%s], or weights do", p.Name)
	}
	if base, version, ok := VersionName(p.Name); ok && (p.Of != base || p.Version != version) {
		c.Add(codeGiven, p.table.key, fmt.Sprintf("write of = %q and version = %d, or choose another name", base, version),
			"%q is the name of version %d of policy %q, and the table says something else", p.Name, version, base)
	}
	for _, key := range p.table.names {
		if of != nil && key != "of" && key != "version" {
			c.Add(codeGiven, p.table.table[key].key, "leave it out, or leave out `of` and write a policy of its own",
				"`%s` beside `of`: everything else of [policy.%s] is that of [policy.%s]", key, p.Name, p.Of)
		}
	}
}

// share gives a policy what it has of the other that its key of names.
func (c *checker) share(p *Policy) {
	of := p.table.at("of")
	names := slices.DeleteFunc(slices.Clone(c.declared("policy")), func(name string) bool { return name == p.Name })
	other := c.graph.Policy(p.Of)
	switch {
	case c.bad["policy"] || c.broken["policy."+p.Of]:
	case p.Of == p.Name || other == nil:
		c.Add("E011", of.val, table.DidYouMean(p.Of, "%q", "declared", names), "policy %q is not declared", p.Of)
	case other.Role() != Learned:
		c.Add(codeGiven, of.val, "name a policy that is learned", "policy %q is not learned itself: it has no versions", p.Of)
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

// GroupOf returns which group of agents a policy plays in its environment, whose description is given: that of its key, else that of
// the agents which rollouts let it play. A version of another policy plays what that one plays. The error is a *table.Error.
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

// sharedLines returns what Decode decodes, with all defaults.
func (p *Policy) sharedLines() []keyValue { return configLines(p.config, p.shared, policyKeys...) }

// meaning returns lines and, of a policy with Of, what it has of the other.
func (p *Policy) meaning() []keyValue {
	lines := p.lines()
	if p.Of != "" {
		lines = append(lines, p.sharedLines()...)
	}
	return lines
}

// Equal reports whether the tables of two policies mean the same.
func (p *Policy) Equal(other *Policy) bool { return slices.Equal(p.meaning(), other.meaning()) }

// Decode decodes what the policy is made of: its table, or with Of the other's, without the keys that the graph has.
func (p *Policy) Decode(into any) error {
	return decoder(p.shared, "policy."+p.Name, policyKeys...)(into)
}

// Place returns where a dotted key of the policy stands, or the policy itself for one that it does not have.
func (p *Policy) Place(key string) Span {
	if n := lookup(p.table, key); n != nil {
		return n.key
	}
	return p.At
}

// Plain returns what Decode reads as plain values, to be decoded elsewhere.
func (p *Policy) Plain() map[string]any { return table.Map(p.shared, policyKeys...) }

// SuffixTensors ends the names of files with the weights of one policy, as rlhost export writes them.
const SuffixTensors = ".safetensors"

// HelpStored says what may stand in a policy's key from.
const HelpStored = "`rlhost runs` lists the runs; `rlhost export` writes .safetensors files"

// Stored returns the path of what a policy's key from names: a file, whose name ends in SuffixTensors, or a run's folder, both
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
