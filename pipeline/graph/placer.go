package graph

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"

	"github.com/rlhost/rlhost/core/table"
)

// Codes of policies that this machine cannot compute: where they must be, and where a file is only read.
const (
	CodeDevice   = "E039"
	CodeNoDevice = "W105"
)

// keyBackend is the key of a policy's backend.
const keyBackend = "backend"

// Computable returns why this machine cannot compute policies of the graph, each with the given code.
func (g *Graph) Computable(parts *Parts, code string) Problems {
	r := Report{File: g.File}
	for i := range g.Policies {
		p := &g.Policies[i]
		plugin := g.Plugin(p.Plugin)
		if p.Plugin == "" || plugin == nil || parts.Computes == nil || p.Of != "" || g.computes(p, parts) != nil {
			continue
		}
		var known *table.Error
		if err := parts.Computes(plugin.Table, g.Dir); errors.As(err, &known) {
			r.Add(code, p.Place(keyBackend), known.Help, "policy %q cannot be computed on this machine: %s", p.Name, known.Reason)
		} else if err != nil {
			r.Add(code, p.Place(keyBackend), "", "policy %q cannot be computed on this machine: %v", p.Name, err)
		}
	}
	return r.Sorted()
}

// placer has policies computed by plugins of Parts.PolicyPlugins, and components of such policies run there.
type placer struct{ check *checker }

// declare notes which plugin computes a policy, and declares it unless the file does.
func (c *placer) declare(p *Policy) {
	if c.check.parts.PolicyPlugin == nil {
		return
	}
	p.Plugin = c.check.parts.PolicyPlugin(p.Decode)
	if p.Plugin == "" || c.check.graph.Plugin(p.Plugin) != nil {
		return
	}
	t, known := c.check.parts.PolicyPlugins[p.Plugin]
	if !known {
		c.check.undeclared(p)
		return
	}
	t.Name = p.Plugin
	c.check.graph.Plugins = append(c.check.graph.Plugins, &Plugin{Table: t, at: p.Place(keyBackend), implied: true})
}

// undeclared reports a policy's plugin that the file does not have.
func (k *checker) undeclared(p *Policy) {
	if name := p.Plugin; !k.broken["plugin."+name] {
		k.Add("E011", p.Place(keyPlugin), table.DidYouMean(name, "%q", "declared", k.declared("plugin")), "plugin %q is not declared", name)
	}
	p.Plugin = ""
}

// keyPlugin is the key of a policy's plugin.
const keyPlugin = "plugin"

// place has a component whose table does not say where it runs run in the plugin that computes its policy, where that has the
// kind.
func (c *placer) place(n *node, x *Component) {
	name, _ := n.at("policy").text()
	p := c.check.graph.Policy(name)
	if p == nil || p.Plugin == "" || n.at("plugin") != nil {
		return
	}
	if n.at("runtime") != nil {
		x.stays = true
		return
	}
	if plugin := c.check.graph.Plugin(p.Plugin); c.check.ask(plugin)[x.Kind] != nil || plugin.err != nil {
		x.Plugin, x.implied = p.Plugin, true
	}
}

// ask starts a plugin to learn which kinds of components it makes, once.
func (k *checker) ask(p *Plugin) map[string]Maker {
	if p.asked || k.broken["plugin."+p.Table.Name] {
		return p.kinds
	}
	p.asked = true
	p.Digest = p.Table.Digest(k.graph.Dir)
	if k.parts.Plugin == nil {
		p.err = errors.New("this program runs no native plugins")
	} else {
		p.kinds, p.err = k.parts.Plugin(p.Table, k.graph.Dir)
	}
	if p.err != nil {
		k.pluginProblem(p, p.err)
	}
	return p.kinds
}

// pluginProblem says why a plugin cannot be used.
func (k *checker) pluginProblem(p *Plugin, err error) {
	if p.implied && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound)) {
		k.Add(CodeDevice, p.at, fmt.Sprintf("`make build` makes it next to this program; %s = \"cpu\" needs none", keyBackend),
			"the program %s, which computes such policies, is not there", p.Table.Path)
		return
	}
	k.sourceProblem(p.at, "plugin "+quote(p.Table.Name), p.Table.Path, err)
}
