package loading

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Set is the environments and policies of a graph, by name. It is immutable once Load has returned.
type Set struct {
	Envs     map[string]*Env
	Policies map[string]component.Policy
	Groups   map[string]int // by policy: the group of agents that it plays
	cache    *Cache         // has Envs
}

// Plugins returns the plugins of the environments.
func (s *Set) Plugins() map[string]env.Plugin {
	plugins := map[string]env.Plugin{}
	for name, v := range s.Envs {
		plugins[name] = v.Plugin
	}
	return plugins
}

// Load loads the environments that the cache does not have, and makes the policies. It blocks on files and on the compilation of
// modules, until ctx ends, which alone is an error: an environment or a policy that could not be loaded or made is missing in the set,
// and c says why. Loaded environments are in the cache also after an error.
func Load(ctx context.Context, g *graph.Graph, parts *graph.Parts, cache *Cache, c *graph.Report) (*Set, error) {
	s := &Set{cache: cache, Envs: map[string]*Env{}, Policies: map[string]component.Policy{}, Groups: map[string]int{}}
	for i := range g.Envs {
		e := &g.Envs[i]
		if err := s.loadEnv(ctx, g, e, parts); err != nil {
			if ctx.Err() != nil {
				return s, context.Cause(ctx)
			}
			addLoadProblem(c, e, err)
			continue
		}
		if hash := s.Envs[e.Name].Plugin.Hash(); e.Table.SHA256 != "" && !strings.EqualFold(hash, e.Table.SHA256) {
			c.Add("E051", e.SHAAt, "take the new hash if the change is wanted", "%s has changed: its SHA-256 is %s", e.Table.Use, hash)
		}
	}
	s.makePolicies(g, parts, c)
	return s, nil
}

func (s *Set) loadEnv(ctx context.Context, g *graph.Graph, e *graph.Env, parts *graph.Parts) error {
	if parts.Load == nil {
		return errors.New("this program loads no environments")
	}
	t := e.Table
	t.Source = t.ReadData(g.Dir)
	digest := t.Digest(g.Dir, parts.Builtins)
	if v := s.cache.find(e.Name, &e.Table, digest); v != nil {
		s.Envs[e.Name] = v
		return nil
	}
	p, err := parts.Load(ctx, e.Name, t, g.Dir)
	if err != nil {
		return err
	}
	spec := p.Spec()
	if err := cmp.Or(tryArgs(p, &e.Table), env.CheckKeys(e.Table.Keys, &spec)); err != nil {
		return errors.Join(err, p.Close())
	}
	v := &Env{Name: e.Name, Table: e.Table, digest: digest, dir: g.Dir, data: t.DataDigest(g.Dir), wrapData: map[int]string{}, Plugin: p}
	there := t.In(g.Dir)
	for place, data := range there.WrapData() {
		v.wrapData[place], _ = files.FolderSHA256(data) // it has just been loaded
	}
	s.cache.add(v)
	s.Envs[e.Name] = v
	return nil
}

// tryArgs makes an environment of a module that describes no arguments with its given ones, and returns why it refuses them: nothing else
// finds a misspelt one. Other errors are reported where environments are made.
func tryArgs(p env.Plugin, t *graph.EnvTable) error {
	spec := p.Spec()
	if t.Plugin != nil || len(t.Args) == 0 || len(spec.Args) > 0 {
		return nil
	}
	one, err := p.NewEnv(env.Options{Name: "args", Envs: 1, Autoreset: spec.PickAutoreset()})
	if err == nil {
		return one.Close()
	}
	var f *env.Fault
	if !errors.As(err, &f) || f.Kind != env.FaultStatus {
		return nil
	}
	return &table.Error{Code: "E097", Key: "args", Reason: "are refused: " + f.Err.Error(), Help: "correct them; the module describes none"}
}

// addLoadProblem says why an environment could not be loaded.
func addLoadProblem(c *graph.Report, of *graph.Env, err error) {
	var known *table.Error
	switch {
	case errors.As(err, &known) && known.Key != "":
		for _, e := range table.All(err) {
			at := of.Place(e.Key)
			if e.Code == table.CodeUnknown {
				at = of.KeyPlace(e.Key)
			}
			c.Add(cmp.Or(e.Code, "E005"), at, e.Help, "env %q: %s", of.Name, e.Sentence())
		}
	case errors.As(err, &known):
		c.Add(known.Code, of.UseAt, known.Help, "env %q: %s", of.Name, known.Sentence())
	case errors.Is(err, fs.ErrNotExist):
		c.Add("E012", of.UseAt, "build it first, or correct the path", "env %q: %s: no such file", of.Name, of.Table.Use)
	default:
		c.Add("E012", of.UseAt, "", "env %q: %v", of.Name, err)
	}
}

// makePolicies makes the policies. A policy that acts with versions of another is the same object as the other.
func (s *Set) makePolicies(g *graph.Graph, parts *graph.Parts, c *graph.Report) {
	for i := range g.Policies {
		if p := &g.Policies[i]; p.Of == "" {
			s.makePolicy(g, p, parts, c)
		}
	}
	for i := range g.Policies {
		if p := &g.Policies[i]; s.Policies[p.Of] != nil {
			s.Policies[p.Name], s.Groups[p.Name] = s.Policies[p.Of], s.Groups[p.Of]
		}
	}
}

// makePolicy makes one policy for its environment, if that has been loaded.
func (s *Set) makePolicy(g *graph.Graph, p *graph.Policy, parts *graph.Parts, c *graph.Report) {
	loaded := s.Envs[p.Env]
	if loaded == nil {
		return
	}
	spec := loaded.Plugin.Spec()
	group, err := g.GroupOf(p, &spec)
	if err != nil {
		var e *table.Error
		errors.As(err, &e)
		c.Add(e.Code, p.Place(e.Key), e.Help, "policy %q: `%s` %s", p.Name, e.Key, e.Reason)
		return
	}
	s.Groups[p.Name] = group
	spec = spec.OfGroup(group)
	made, err := g.MakePolicy(p, parts, &spec)
	if err != nil {
		var e *table.Error
		if errors.As(err, &e) {
			c.Add(cmp.Or(e.Code, "E041"), p.Place(e.Key), e.Help, "policy %q cannot serve env %q: %s", p.Name, p.Env, e.Sentence())
			return
		}
		c.Add("E041", p.At, "give the environment spaces that this version has policies for: "+hostabi.Runs,
			"policy %q cannot serve env %q: %v", p.Name, p.Env, err)
		return
	}
	s.Policies[p.Name] = made
}
