package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// begin starts a new run, perhaps from the weights of an old one.
func (s *Session) begin(ctx context.Context) (err error) {
	if err = s.findLeading(); err != nil {
		return err
	}
	if s.o.InitFrom != nil || s.o.InitTensors != "" {
		err = s.startFrom(ctx)
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

// lookForUnfinished mentions the newest run of that name, if it is unfinished.
func (s *Session) lookForUnfinished() {
	run, err := runs.Open(s.graph.Run.Dir, s.graph.Run.Name)
	if err != nil {
		return
	}
	info := run.Info()
	if info.State == runs.Ended && info.Reason != string(component.StopInterrupted) && info.Reason != string(Broken) {
		return
	}
	if run.Lock() != nil { // it is still running
		return
	}
	latest, err := run.Load(runs.Latest)
	if run.Close() != nil || err != nil {
		return
	}
	s.tell(Unfinished{Run: run.ID(), EnvSteps: latest.EnvSteps})
}

// stateOfRun returns the newest state of a component of an old run.
func stateOfRun(old *runs.Run, name string) (state component.State, err error) {
	checkpoint, err := newest(old)
	if err != nil {
		return state, err
	}
	state, ok := checkpoint.Components[name]
	if !ok {
		return state, &Error{Kind: Usage, Err: fmt.Errorf("run %s has no saved state of component %q", old.ID(), name)}
	}
	return state, nil
}

// statesOfRun finds the newest states of an old run's learners by the names of their policies. Where one policy was learned and
// one is learned now, their names may differ.
func statesOfRun(old *runs.Run, parts *graph.Parts, now []learning) (map[string]component.State, error) {
	states := map[string]component.State{}
	if len(now) == 1 && len(old.Info().Policies) < 2 {
		state, err := stateOfRun(old, now[0].component)
		states[now[0].component] = state
		return states, err
	}
	g, err := ownPipeline(old, nil, parts)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, x := range learnings(g) {
		names = append(names, x.policy.Name)
		i := slices.IndexFunc(now, func(l learning) bool { return l.policy.Name == x.policy.Name })
		if i < 0 {
			continue
		}
		if states[now[i].component], err = stateOfRun(old, x.component); err != nil {
			return nil, err
		}
	}
	if len(states) == 0 {
		return nil, &Error{Kind: Usage, Err: fmt.Errorf("run %s has learned no policy of a name that is learned here: %s\n"+
			"  help: name a policy as there, or begin with the file of one: rlhost export %s --policy NAME --format safetensors",
			old.ID(), strings.Join(names, ", "), old.ID())}
	}
	return states, nil
}

// stateOfTensors returns the state of a learner that begins with the weights of a safetensors file.
func stateOfTensors(ctx context.Context, path string, learner Learner, parts *graph.Parts, g *graph.Graph, p *graph.Policy) (
	state component.State, err error) {
	file, err := files.Read(path, players.MaxTensors)
	if err != nil {
		return state, &Error{Kind: Usage, Err: err}
	}
	tensors, _, err := runs.DecodeTensors(file)
	if err != nil {
		return state, &Error{Kind: Usage, Err: fmt.Errorf("%s: %w", path, err)}
	}
	player, plugin, err := define(ctx, parts, g, p)
	if err != nil {
		return state, err
	}
	if err := plugin.Close(); err != nil {
		return state, err
	}
	if state, err = learner.FromTensors(player.Network, tensors); err != nil {
		err = &Error{Kind: Usage, Err: fmt.Errorf("%s: %w\n  help: names and shapes are those of rlhost export --format safetensors", path, err)}
	}
	return state, err
}

// startFrom makes the weights of an old run or of a file the beginning of this one. Weights of a file are the leading policy's.
func (s *Session) startFrom(ctx context.Context) error {
	learner, err := learnerOf(s.o.Parts)
	if err != nil {
		return err
	}
	states := map[string]component.State{}
	if s.o.InitFrom != nil {
		states, err = statesOfRun(s.o.InitFrom, s.o.Parts, learnings(s.graph))
	} else {
		states[s.learner], err = stateOfTensors(ctx, s.o.InitTensors, learner, s.o.Parts, s.graph, s.policy)
	}
	if err != nil {
		return err
	}
	for name, state := range states {
		if states[name], err = learner.StartFrom(state, s.graph.Run.Seed, s.o.Reset); err != nil {
			return fmt.Errorf("component %q: %w", name, err)
		}
	}
	for _, x := range learnings(s.graph) {
		if _, ok := states[x.component]; !ok {
			s.log.Warn("a policy begins from scratch: there are no weights of its name", "policy", x.policy.Name)
		}
	}
	s.before.Components = states
	return nil
}

// text returns a graph as in pipeline.toml of the run's folder.
func (s *Session) text(g *graph.Graph) ([]byte, error) { return s.textIn(s.run.Dir, g) }

func (s *Session) textIn(dir string, g *graph.Graph) ([]byte, error) {
	kept, err := s.movedTo(dir, g)
	if err != nil {
		return nil, err
	}
	if len(learnings(g)) > 1 {
		kept.Run.Policy = s.policy.Name
	}
	for i := range kept.Envs { // the folder's own modules go with it where it is moved to
		t := &kept.Envs[i].Table
		keepInside(dir, &t.Use)
		keepInside(dir, &t.Data)
		t.Wrap = t.WrapAt(func(path string) string { keepInside(dir, &path); return path })
	}
	for i := range kept.Components {
		if m := kept.Components[i].Module; m != nil {
			keepInside(dir, &m.Table.Use)
			keepInside(dir, &m.Table.Data)
		}
	}
	return []byte(kept.Resolved()), nil
}

// keepInside makes an absolute path into a folder relative to that.
func keepInside(dir string, path *string) {
	if !filepath.IsAbs(*path) {
		return
	}
	if inside, err := files.Relative(dir, *path); err == nil && filepath.IsLocal(inside) {
		*path = inside
	}
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
		if t.Data != "" && !filepath.IsAbs(t.Data) {
			move(&t.Data, t.DataIn(g.Dir))
		}
		t.Wrap = t.WrapMoved(func(path string) string { move(&path, filepath.Join(g.Dir, path)); return path })
	}
	moved.Components = slices.Clone(g.Components)
	for i := range moved.Components {
		x := &moved.Components[i]
		if x.Module == nil {
			continue
		}
		there := *x.Module
		if x.Module = &there; !filepath.IsAbs(there.Table.Use) {
			move(&there.Table.Use, there.Path(g.Dir))
		}
		if data := there.Table.Data; data != "" && !filepath.IsAbs(data) {
			move(&there.Table.Data, filepath.Join(g.Dir, data))
		}
	}
	moved.Policies = slices.Clone(g.Policies)
	for i := range moved.Policies {
		var err error
		moved.Policies[i].From, err = players.MovedFrom(dir, g, g.Policies[i].From)
		errs = append(errs, err)
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

// describe writes the run's parts into its folder and announces that it is about to start.
func (s *Session) describe() error {
	hashes, err := s.pluginHashes()
	if err != nil {
		return err
	}
	e := Started{
		Run: s.run.ID(), Dir: s.run.Dir, Seed: s.graph.Run.Seed, Mode: s.graph.Mode(), Kernels: kernelsOf(s),
		Pipeline: s.graph.Hash(), Plugins: hashes, Policy: s.policy.Name,
	}
	networks := map[string]json.RawMessage{}
	for _, x := range learnings(s.graph) {
		e.Learned = append(e.Learned, x.policy.Name)
		d, err := definitionOf(s, x.policy.Name)
		if err == nil {
			networks[x.policy.Name], err = json.Marshal(d.Network)
		}
		if err != nil {
			return err
		}
	}
	s.know(s.before.EnvSteps, s.before.PolicyVersion)
	exact, why := s.exactness(hashes, e.Kernels)
	if err := s.run.Lead(s.policy.Name); err != nil {
		return err
	}
	file, err := fileOf(s.graph)
	if err != nil {
		return err
	}
	err = s.run.Update(func(i *runs.Info) {
		if !s.resumed {
			i.File, i.Sets = file, s.o.Sets
		}
		i.Rlhost, i.Seed, i.Mode, i.Kernel, i.Plugins = hostabi.Release, e.Seed, e.Mode, e.Kernels, hashes
		i.Python = interpreterOf(s.graph)
		i.Env, i.Outcome = s.envUsed(), nil
		i.Policies = networks
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

// envUsed returns what the leading policy's environment is made of, or the first one's where nothing is learned; empty if there is none.
func (s *Session) envUsed() string {
	if e := s.graph.Env(s.policy.Env); e != nil {
		return e.Table.Use
	}
	if len(s.graph.Envs) > 0 {
		return s.graph.Envs[0].Table.Use
	}
	return ""
}

// fileOf returns the file that a pipeline can be read from again, or nothing.
func fileOf(g *graph.Graph) (string, error) {
	if g.File == graph.StandardInput {
		return "", nil
	}
	return filepath.Abs(g.File)
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

// pluginHashes are the hashes of all environments, and of modules around them, by the name that the run's own pipeline has for them.
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
		if e.Table.Data != "" {
			hashes[e.Table.Data] = e.Table.DataDigest(s.run.Dir)
		}
		wrappers := e.Table.WrapHashes(plugin)
		for place, use := range e.Table.WrapModules() {
			hashes[use] = wrappers[place]
		}
		for _, data := range e.Table.WrapData() {
			hashes[data], _ = files.FolderSHA256(files.In(s.run.Dir, data))
		}
	}
	return hashes, nil
}
