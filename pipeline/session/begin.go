package session

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// begin starts a new run, perhaps from the weights of an old one.
func (s *Session) begin() (err error) {
	if err = s.aimed(); err != nil {
		return err
	}
	if s.o.InitFrom != nil {
		err = s.initFrom(s.o.InitFrom)
	} else {
		s.lookForUnfinished()
	}
	if err != nil {
		return err
	}
	if s.run, err = runs.Create(s.graph.Run.Dir, s.graph.Run.Name); err != nil {
		return fmt.Errorf("%w\n  help: runs go to the folder %s; another one is --set run.dir=DIR", err, s.graph.Run.Dir)
	}
	s.keep()
	s.openLog()
	text, err := s.text(s.graph)
	if err != nil {
		return err
	}
	return s.run.WritePipeline(text)
}

// aimed finds what is trained: one learner, of the policy that was named.
func (s *Session) aimed() (err error) {
	learners := 0
	for i := range s.graph.Components {
		if c := &s.graph.Components[i]; c.Kind == kindLearner {
			learners += c.Count
		}
	}
	if learners != 1 || len(s.graph.Policies) == 0 {
		return &Error{Kind: Config, Err: fmt.Errorf("%s: train wants one learner and one policy, this pipeline has %d and %d\n"+
			"  help: add or remove components of kind learner and [policy] tables; presets have one of each",
			s.graph.File, learners, len(s.graph.Policies))}
	}
	s.policy, s.learner, err = learned(s.graph, s.o.Policy)
	return err
}

// lookForUnfinished tells of the newest run of that name, if that did not come to its end.
func (s *Session) lookForUnfinished() {
	run, err := runs.Open(s.graph.Run.Dir, s.graph.Run.Name)
	if err != nil {
		return
	}
	info := run.Info()
	if info.State == runs.Ended && info.Reason != string(component.StopInterrupted) && info.Reason != string(Broken) {
		return
	}
	if run.Lock() != nil { // it is still going on
		return
	}
	latest, err := run.Load(runs.Latest)
	if run.Close() != nil || err != nil {
		return
	}
	s.tell(Unfinished{Run: run.ID(), EnvSteps: latest.EnvSteps})
}

// initFrom makes the weights of an old run the beginning of this one.
func (s *Session) initFrom(old *runs.Run) error {
	checkpoint, err := newest(old)
	if err != nil {
		return err
	}
	state, ok := checkpoint.Components[s.learner]
	if !ok {
		return &Error{Kind: Usage, Err: fmt.Errorf("run %s has no saved state of component %q", old.ID(), s.learner)}
	}
	learner, err := learnerOf(s.o.Parts)
	if err != nil {
		return err
	}
	if state, err = learner.StartFrom(state, s.graph.Run.Seed, s.o.Reset); err != nil {
		return err
	}
	s.before.Components = map[string]component.State{s.learner: state}
	return nil
}

// text is what pipeline.toml of the run's folder says of a graph.
func (s *Session) text(g *graph.Graph) ([]byte, error) {
	kept, err := s.movedTo(s.run.Dir, g)
	if err != nil {
		return nil, err
	}
	for i := range kept.Envs { // the folder's own modules go with it where it is moved to
		use := &kept.Envs[i].Table.Use
		if !filepath.IsAbs(*use) {
			continue
		}
		if inside, err := files.Relative(s.run.Dir, *use); err == nil && filepath.IsLocal(inside) {
			*use = inside
		}
	}
	return []byte(kept.Expanded()), nil
}

// movedTo returns the graph as a file in another folder would give it: with the paths of plugins relative to that.
func (s *Session) movedTo(dir string, g *graph.Graph) (*graph.Graph, error) {
	moved := *g
	moved.Envs, moved.Dir = slices.Clone(g.Envs), dir
	var errs []error
	move := func(path *string, from string) {
		relative, err := files.Relative(dir, from)
		*path, errs = relative, append(errs, err)
	}
	for i := range moved.Envs {
		t := &moved.Envs[i].Table
		if use, relative := t.Locate(g.Dir, s.o.Parts.Builtins); relative {
			move(&t.Use, use)
		}
	}
	moved.Plugins = make([]*graph.Plugin, len(g.Plugins))
	for i, p := range g.Plugins {
		there := *p
		moved.Plugins[i] = &there
		if path := there.Table.Path; filepath.Base(path) != path && !filepath.IsAbs(path) {
			move(&there.Table.Path, filepath.Join(g.Dir, path))
		}
	}
	return &moved, errors.Join(errs...)
}

// describe writes what the run is made of into its folder and tells that it is about to start.
func (s *Session) describe() error {
	hashes, err := s.pluginHashes()
	if err != nil {
		return err
	}
	d := s.definition()
	e := Started{
		Run: s.run.ID(), Dir: s.run.Dir, Seed: s.graph.Run.Seed, Mode: s.graph.Mode(), Kernels: d.Backend.Kernels(),
		Pipeline: s.graph.Hash(), Plugins: hashes,
	}
	s.know(s.before.EnvSteps, s.before.PolicyVersion)
	exact, why := s.exactness(hashes, e.Kernels)
	err = s.run.Update(func(i *runs.Info) {
		i.Rlhost, i.Seed, i.Mode, i.Kernel, i.Plugins = hostabi.Release, e.Seed, e.Mode, e.Kernels, hashes
		i.Python = interpreterOf(s.graph)
		i.Policies = map[string]any{s.policy.Name: d.Network}
	})
	if err == nil && s.resumed {
		err = s.describeResume(exact, why)
	}
	if err != nil {
		return err
	}
	s.tell(e)
	return nil
}

// interpreterOf returns the program that plays a pipeline's environments without a [plugin] table, or nothing.
func interpreterOf(g *graph.Graph) string {
	for _, e := range g.Envs {
		if t := e.Table.Plugin; t != nil && g.Plugin(t.Name) == nil {
			return t.Path
		}
	}
	return ""
}

// pluginHashes are the hashes of all environments, by the name that the run's own pipeline has for them.
func (s *Session) pluginHashes() (map[string]string, error) {
	kept, err := s.movedTo(s.run.Dir, s.graph)
	if err != nil {
		return nil, err
	}
	hashes := map[string]string{}
	for _, e := range kept.Envs {
		plugin, err := s.pipeline.Env(e.Name)
		if err != nil {
			return nil, err
		}
		hashes[e.Table.Use] = plugin.Hash()
	}
	return hashes, nil
}
