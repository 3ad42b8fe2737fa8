package loading

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Set is the environments and policies of a graph, by name. It is immutable once Load has returned.
type Set struct {
	Envs     map[string]*Env
	Policies map[string]component.Policy
	Groups   map[string]int // by policy: the group of agents that it plays
	Warnings graph.Problems
	cache    *Cache // what Envs are from
}

// Check loads every environment, makes every policy, checks them against each other and releases them. It
// reports what Load does: Problems for errors in the file, and Set.Warnings; and what the arenas will take. Runs and files that
// policies have their weights from must be there: for a run that goes on they need not be, whose own state has them.
func Check(ctx context.Context, g *graph.Graph, parts *graph.Parts) (needs []Need, warnings graph.Problems, err error) {
	var cache Cache
	s, err := Load(ctx, g, parts, &cache)
	if err == nil {
		err = checkStored(g)
	}
	needs = s.Forecast(g)
	return needs, append(s.Warnings, g.Computable(parts, graph.CodeNoDevice)...), errors.Join(err, cache.Close())
}

// checkStored checks that the runs and files are there that policies have their weights from.
func checkStored(g *graph.Graph) error {
	c := &graph.Report{File: g.File}
	for i := range g.Policies {
		p := &g.Policies[i]
		if p.From == "" {
			continue
		}
		if _, err := g.Stored(p.From); err != nil {
			c.Add("E012", p.Place("from"), graph.HelpStored, "policy %q: %v", p.Name, err)
		}
	}
	return c.Sorted().Err()
}

// Load loads the environments that the cache does not have, makes the policies and checks them against each other. It
// blocks on files and on the compilation of modules, until ctx ends. What it has loaded is in the cache also after an
// error; errors in the file are Problems.
func Load(ctx context.Context, g *graph.Graph, parts *graph.Parts, cache *Cache) (*Set, error) {
	s := &Set{cache: cache, Envs: map[string]*Env{}, Policies: map[string]component.Policy{}, Groups: map[string]int{}}
	c := &graph.Report{File: g.File}
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
	checkStacks(g, c)
	s.makePolicies(g, parts, c)
	s.checkSpaces(g, c)
	s.checkAgents(g, c)
	s.checkMemory(g, c)
	s.checkPast(g, c)
	s.checkChunks(g, c)
	s.checkColumns(g, c)
	s.checkNeeds(g, parts, c)
	s.checkEnds(g, c)
	s.checkLimits(g, c)
	s.checkDoubts(g, c)
	found := c.Sorted()
	for _, problem := range found {
		if problem.Severity == graph.Warning {
			s.Warnings = append(s.Warnings, problem)
		}
	}
	return s, found.Err()
}

func (s *Set) loadEnv(ctx context.Context, g *graph.Graph, e *graph.Env, parts *graph.Parts) error {
	if parts.Load == nil {
		return errors.New("this program loads no environments")
	}
	digest := digestOf(&e.Table, g.Dir, parts.Builtins)
	if v := s.cache.find(e.Name, &e.Table, digest); v != nil {
		s.Envs[e.Name] = v
		return nil
	}
	p, err := parts.Load(ctx, e.Name, e.Table, g.Dir)
	if err != nil {
		return err
	}
	if err := tryArgs(p, &e.Table); err != nil {
		return errors.Join(err, p.Close())
	}
	v := &Env{Name: e.Name, Table: e.Table, digest: digest, Plugin: p}
	s.cache.add(v)
	s.Envs[e.Name] = v
	return nil
}

// tryArgs makes an environment of a module that describes no arguments with those that it is given, and returns why it refuses: nothing else
// tells that one is misspelt. What else is wrong with it is told where environments are made.
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

// digestOf identifies the source of an environment: the SHA-256 of its file, or its name if it is built in, with those of
// the modules around it. It begins empty if there is no such file, which loading reports.
func digestOf(t *graph.EnvTable, dir string, builtins []string) string {
	if t.Plugin != nil {
		digest := t.Plugin.Digest(dir)
		if digest == "" {
			return ""
		}
		return digest + t.Plugin.File(dir) + t.WrapDigest(dir) // what lies beside a script belongs to it
	}
	use, relative := t.Locate(dir, builtins)
	if !relative && !filepath.IsAbs(use) {
		return use + t.WrapDigest(dir)
	}
	sum, _ := files.SHA256(use)
	return sum + t.WrapDigest(dir)
}

// addLoadProblem says why an environment could not be loaded.
func addLoadProblem(c *graph.Report, of *graph.Env, err error) {
	var known *table.Error
	switch {
	case errors.As(err, &known) && known.Key != "":
		for _, e := range table.All(err) {
			c.Add(cmp.Or(e.Code, "E005"), of.Place(e.Key), e.Help, "env %q: %s", of.Name, e.Sentence())
		}
	case errors.As(err, &known):
		c.Add(known.Code, of.UseAt, known.Help, "env %q: %s", of.Name, known.Sentence())
	case errors.Is(err, fs.ErrNotExist):
		c.Add("E012", of.UseAt, "build it first, or correct the path", "env %q: %s: no such file", of.Name, of.Table.Use)
	default:
		c.Add("E012", of.UseAt, "", "env %q: %v", of.Name, err)
	}
}

// makePolicies makes the policies. One that acts with versions of another is that one, whoever asks for it.
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
	if parts.Policy == nil {
		c.Add("E041", p.At, "", "policy %q: this program makes no policies", p.Name)
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
	made, err := parts.Policy(p.Decode, &spec)
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

// checkSpaces checks that each policy was made for spaces like those of the environments whose data reaches the
// components that use it.
func (s *Set) checkSpaces(g *graph.Graph, c *graph.Report) {
	for i := range g.Components {
		from := &g.Components[i]
		gives := s.Envs[from.Env]
		if gives == nil {
			continue
		}
		for _, name := range g.PoliciesBehind(from) {
			p := g.Policy(name)
			made := s.Envs[p.Env]
			if made == nil || p.Of != "" {
				continue
			}
			if want, got := Spaces(made.Plugin.Spec()), Spaces(gives.Plugin.Spec()); want != got {
				c.Add("E041", p.At, "declare a policy for it: [policy.NAME] with env = \""+from.Env+"\"",
					"policy %q was made for %s but env %q gives %s", name, want, from.Env, got)
			}
		}
	}
}

// checkAgents checks that each agent has one policy.
func (s *Set) checkAgents(g *graph.Graph, c *graph.Report) {
	for i := range g.Components {
		x := &g.Components[i]
		runs := s.Envs[x.Env]
		if runs == nil || x.Flow.Envs == 0 {
			continue
		}
		spec := runs.Plugin.Spec()
		if len(x.Flow.Acting()) == 0 && (len(spec.Groups) < 2 || len(g.PoliciesBehind(x)) == 0) {
			continue // one policy plays all agents, or none does
		}
		_, err := x.Flow.PolicyOfAgents(&spec)
		for _, e := range table.All(err) {
			x.Report(c, e)
		}
	}
}

// checkMemory checks that the blocks that each component's environments step into can be mapped: those of a split into the memory
// of one instance, whose limit they do not count against.
func (s *Set) checkMemory(g *graph.Graph, c *graph.Report) {
	for i := range g.Components {
		x := &g.Components[i]
		from, f := s.Envs[x.Env], x.Flow
		if from == nil || f.BlockRows == 0 || f.Splits == 0 || f.Envs < f.Splits {
			continue
		}
		blocks, envs := 1, f.Envs/f.Splits
		if !g.Synchronous {
			blocks = f.Blocks / f.Splits
		}
		at := graph.Span{}
		if e := g.Env(x.Env); e != nil {
			at = e.UseAt
		}
		schema, err := trajectory.NewSchema(from.Plugin.Spec(), trajectory.Shape{Steps: f.BlockRows / envs, Envs: envs, Shaped: env.Shapes(from.Plugin)})
		if err != nil {
			c.Add("E042", at, fmt.Sprintf("lower envs or horizon of %q, or raise its splits", x.Name), "env %q: %v", x.Env, err)
			continue
		}
		var short *env.MemoryError
		if errors.As(env.CheckMemory(from.Plugin, blocks, schema), &short) {
			help := short.Help(fmt.Sprintf("lower envs, horizon or blocks of %q, or raise its splits", x.Name))
			c.Add("E042", at, help, "env %q: %v", x.Env, short)
		}
	}
}

// checkPast checks that policies that read earlier rows play agents that always act: blocks keep rows of environments, not of turns.
func (s *Set) checkPast(g *graph.Graph, c *graph.Report) {
	for i := range g.Components {
		x := &g.Components[i]
		runs := s.Envs[x.Env]
		if runs == nil || x.Flow.Envs == 0 {
			continue
		}
		spec := runs.Plugin.Spec()
		if _, turns := spec.Tensor(hostabi.RoleActive); !turns {
			continue
		}
		for k := range g.Policies {
			p := &g.Policies[k]
			if made := s.Policies[p.Name]; x.Keeps(p) && p.Of == "" && made != nil && made.Memory().Past > 0 {
				c.Add("E041", placeOfPast(p), "leave stacked frames, last_action and last_reward out; a core remembers what an agent saw in its own turns: net = { core = { kind = \"gru\" } }",
					"policy %q reads what was before a row, and the agents of env %q do not act in all rows", p.Name, x.Env)
			}
		}
	}
}

// placeOfPast is where a policy says that it reads earlier rows, which are three keys.
func placeOfPast(p *graph.Policy) graph.Span {
	for _, key := range []string{graph.KeyStack, "encoder", "inputs"} {
		if at := p.Place(key); at != p.At {
			return at
		}
	}
	return p.At
}

// checkChunks checks that trajectories are whole chunks of the policies that are learned in such.
func (s *Set) checkChunks(g *graph.Graph, c *graph.Report) {
	for i := range g.Components {
		x := &g.Components[i]
		if x.Flow.BlockRows == 0 || x.Flow.Envs < x.Flow.Splits {
			continue
		}
		horizon := x.Flow.BlockRows / (x.Flow.Envs / x.Flow.Splits)
		for k := range g.Policies {
			p := &g.Policies[k]
			made := s.Policies[p.Name]
			if !x.Keeps(p) || p.Of != "" || made == nil || made.Memory().Chunk == 0 || horizon%made.Memory().Chunk == 0 {
				continue
			}
			chunk := made.Memory().Chunk
			c.Add("E052", p.Place("net"), fmt.Sprintf("use horizon = %d in [component.%s], or a net.chunk that divides %d", (horizon+chunk-1)/chunk*chunk, x.Name, horizon),
				"policy %q is learned in chunks of %d rows, and trajectories of component %q have %d", p.Name, chunk, x.Name, horizon)
		}
	}
}

// checkEnds warns of environments whose episodes have no limit from outside.
func (s *Set) checkEnds(g *graph.Graph, c *graph.Report) {
	for i := range g.Components {
		x := &g.Components[i]
		runs := s.Envs[x.Env]
		if runs == nil || x.Flow.Envs == 0 || runs.Plugin.Spec().EpisodeLimit > 0 {
			continue
		}
		c.Add("W104", g.Env(x.Env).UseAt, fmt.Sprintf("add wrap = [{ time_limit = 1000 }] to [env.%s], unless every episode ends by itself", x.Env),
			"env %q has no limit to its episodes, and component %q runs it", x.Env, x.Name)
	}
}

// checkLimits warns of time limits that never act, because episodes end before by the environment's own limit or by another one within.
func (s *Set) checkLimits(g *graph.Graph, c *graph.Report) {
	for i := range g.Envs {
		e := &g.Envs[i]
		runs := s.Envs[e.Name]
		if runs == nil {
			continue
		}
		own := runs.Plugin.Spec().EpisodeLimit // behind all wrappers, of which those that repeat actions have divided it
		for k, w := range slices.Backward(e.Table.Wrap) {
			if steps, ok := w["action_repeat"].(int64); ok {
				own *= int(steps)
			}
			if limit, ok := w["time_limit"].(int64); ok && own > 0 && limit > int64(own) {
				c.Add("W123", e.Place(fmt.Sprintf("wrap[%d].time_limit", k)), "leave it out, or raise the limit where it is: in args of the environment, or in its description",
					"wrap[%d] of env %q has time_limit = %d, and its episodes end after %d env steps at most: the longer limit has no effect", k, e.Name, limit, own)
			}
		}
	}
}

// checkDoubts warns of policies that are learned and will hardly be.
func (s *Set) checkDoubts(g *graph.Graph, c *graph.Report) {
	for i := range g.Policies {
		p := &g.Policies[i]
		made, ok := s.Policies[p.Name].(component.Doubtful)
		if !ok || p.Of != "" {
			continue
		}
		if d := made.Doubt(); d != nil {
			c.Add("W114", p.Place(d.Key), d.Help, "policy %q %s", p.Name, d.Reason)
		}
	}
}

// Spaces tells the spaces that a policy depends on.
func Spaces(s hostabi.EnvSpec) string {
	text := s.Spaces(hostabi.RoleObservation) + " observations and " + s.Spaces(hostabi.RoleAction) + " actions"
	if s.HasMask() {
		text += " with a mask"
	}
	return text
}
