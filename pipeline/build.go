package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/rollout"
	"github.com/rlhost/rlhost/core/stat"
)

// defaultGrace is how long an interrupted run goes on at most to reach a dataset boundary.
const defaultGrace = 5 * time.Second

// BuildOptions say how a graph is run.
type BuildOptions struct {
	Parts  *Parts       // as given to Parse
	RunDir string       // run folder, or empty
	Log    *slog.Logger // nil is silence
	// Resume is the state of instances by name, as a snapshot returned it. Instances without one start anew.
	Resume map[string]component.State
	// AtBoundary is called at dataset boundaries, on the learner's loop, which waits for it; of several learners
	// one at a time. snapshot may be called during the call only; see Snapshot. An error ends the run.
	// Pipeline.Stopping tells whether this boundary is the last.
	AtBoundary func(snapshot func() (map[string]component.State, error)) error
	// Grace is how long an interrupted run goes on at most to reach a boundary; 0 means 5 s.
	Grace time.Duration
}

// Pipeline is a graph with everything that it takes to run. Use Build, Run once, Close.
type Pipeline struct {
	graph   *Graph
	options BuildOptions
	log     *slog.Logger
	run     component.Run
	loaded  *loaded
	arenas  *arena.Set
	stats   *stat.Registry

	instances []*instance
	loops     []*runningLoop
	wires     []*runningWire
	ending    ending
	released  sync.Once
}

// instance is one instance of a component.
type instance struct {
	of        *Component
	component component.Component
	host      *component.Host
	loop      *runningLoop
}

// runningLoop is an event loop and its end.
type runningLoop struct {
	*loop.Loop
	ended chan struct{} // closed when Run has returned
}

// Build loads plugins, makes policies and components and connects them. Nothing runs yet. It blocks on files and
// on the compilation of plugins; ctx ends that. Errors that the file is to blame for are Problems. After an error
// everything has been released.
func Build(ctx context.Context, g *Graph, o BuildOptions) (*Pipeline, error) {
	p := &Pipeline{graph: g, options: o, log: o.Log, arenas: arena.NewSet(), stats: stat.NewRegistry()}
	if p.log == nil {
		p.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if p.options.Grace <= 0 {
		p.options.Grace = defaultGrace
	}
	if p.options.Parts == nil {
		p.options.Parts = &Parts{}
	}
	p.run = component.Run{Name: g.Run.Name, Seed: g.Run.Seed, Dir: o.RunDir, Synchronous: g.Synchronous, Stop: g.Run.Stop}
	if err := p.build(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Pipeline) build(ctx context.Context) (err error) {
	if p.loaded, err = load(ctx, p.graph, p.options.Parts); err != nil {
		return err
	}
	for i := range p.graph.Components {
		for index := range p.graph.Components[i].Count {
			if err := p.add(&p.graph.Components[i], index); err != nil {
				return err
			}
		}
	}
	p.stats.Gauge("rollout/envs").Set(float64(p.envsBefore()))
	for _, x := range p.instances {
		if err := p.start(x); err != nil {
			return fmt.Errorf("%s: %w", x.host.Name, err)
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
	}
	if err := p.resume(); err != nil {
		return err
	}
	return p.connect()
}

// add makes one instance, on its loop.
func (p *Pipeline) add(of *Component, index int) error {
	name := of.Name
	if of.Count > 1 {
		name = fmt.Sprintf("%s[%d]", of.Name, index)
	}
	maker, err := p.makerOf(of)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	made, err := maker()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	x := &instance{of: of, component: made, loop: p.loopNamed(of.loopOf(index))}
	x.host = &component.Host{
		Name: name, ID: uint16(len(p.instances) + 1), Index: index, Count: of.Count, FirstEnv: p.envsBefore(),
		Run: &p.run, Receiver: x.loop.NewReceiver(name), Arenas: p.arenas, Stats: p.stats,
		Log: p.log.With("component", name),
		Env: p.Env, Policy: p.Policy, Peers: p.peers, Tables: p.tables,
		Readers:  func(signal string) int { return p.readers(of, signal) },
		Boundary: func() { p.reach(x) }, Stop: p.Stop,
	}
	if err := x.component.Configure(decoder(of.table, "component."+of.Name, ownKeys...)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.instances = append(p.instances, x)
	return nil
}

// envsBefore returns how many environments the instances so far have.
func (p *Pipeline) envsBefore() int {
	n := 0
	for _, x := range p.instances {
		n += x.of.Flow.Envs
	}
	return n
}

// makerOf returns what makes a component where its runtime runs it.
func (p *Pipeline) makerOf(of *Component) (Maker, error) {
	parts := p.options.Parts
	switch {
	case of.maker != nil:
		return of.maker, nil
	case of.Runtime != runtimeProcess && parts.Kinds[of.Kind] != nil:
		return builtinMaker(parts.Kinds[of.Kind]), nil
	case of.Runtime == runtimeProcess && parts.Plugin == nil:
		return nil, errors.New("this program runs no native plugins")
	case of.Runtime == runtimeProcess:
		kinds, err := parts.Plugin(DefaultPlugin(), p.graph.Dir)
		if err != nil || kinds[of.Kind] != nil {
			return kinds[of.Kind], err
		}
	}
	return nil, fmt.Errorf("this program has no kind %q", of.Kind)
}

// loopNamed returns the loop of that name, made when it is first asked for.
func (p *Pipeline) loopNamed(name string) *runningLoop {
	i := slices.IndexFunc(p.loops, func(l *runningLoop) bool { return l.Name() == name })
	if i >= 0 {
		return p.loops[i]
	}
	l := &runningLoop{Loop: loop.New(name), ended: make(chan struct{})}
	p.loops = append(p.loops, l)
	return l
}

// start gives an instance its ports and starts it.
func (p *Pipeline) start(x *instance) error {
	m := x.component.Manifest()
	x.host.Bind(m)
	if err := x.component.Start(x.host); err != nil {
		return err
	}
	for _, port := range m.Slots {
		if x.host.BoundSlot(port.Name) == nil {
			return fmt.Errorf("kind %s does not bind its slot %q", x.of.Kind, port.Name)
		}
	}
	return nil
}

// resume restores what the options have state of.
func (p *Pipeline) resume() error {
	left := len(p.options.Resume)
	for _, x := range p.instances {
		state, ok := p.options.Resume[x.host.Name]
		if !ok {
			continue
		}
		left--
		if err := x.component.Restore(state); err != nil {
			return fmt.Errorf("%s: restore: %w", x.host.Name, err)
		}
	}
	if left > 0 {
		return fmt.Errorf("the saved state has %d components that the pipeline does not have", left)
	}
	return nil
}

// Env returns a loaded environment, until Close.
func (p *Pipeline) Env(name string) (rollout.Plugin, error) {
	if plugin := p.loaded.plugins[name]; plugin != nil {
		return plugin, nil
	}
	return nil, fmt.Errorf("env %q is not declared", name)
}

// Policy returns what Parts.Policy made of a [policy.NAME] table.
func (p *Pipeline) Policy(name string) (any, error) {
	if made, ok := p.loaded.policies[name]; ok {
		return made, nil
	}
	return nil, fmt.Errorf("policy %q is not declared", name)
}

// peers returns how many instances of a kind there are.
func (p *Pipeline) peers(kind string) int { return p.instancesByKind()[kind] }

func (p *Pipeline) instancesByKind() map[string]int {
	n := map[string]int{}
	for i := range p.graph.Components {
		n[p.graph.Components[i].Kind] += p.graph.Components[i].Count
	}
	return n
}

// readers returns how many blocks of a signal its receivers may have claims on at once: each works on one while
// others wait for it.
func (p *Pipeline) readers(from *Component, signal string) int {
	n := 0
	for i := range p.graph.Wires {
		if w := &p.graph.Wires[i]; w.From == from.Name && w.Signal == signal {
			to := p.graph.Component(w.To)
			n += to.Count * (1 + w.Depth)
			if to.Runtime == runtimeProcess {
				n += 2 * to.Count // one is under way to the process, one is kept for its successor
			}
		}
	}
	return n
}

// tables returns what components that run elsewhere are told of the file.
func (p *Pipeline) tables() component.Tables {
	t := component.Tables{
		Policies: map[string]component.PolicyTable{}, Envs: map[string]rollout.EnvSpec{}, Peers: p.instancesByKind(),
		Sources: map[string]component.EnvSource{},
	}
	for i := range p.graph.Policies {
		x := &p.graph.Policies[i]
		t.Policies[x.Name] = component.PolicyTable{Env: x.Env, Table: plainTable(x.table, "env")}
	}
	for name, plugin := range p.loaded.plugins {
		t.Envs[name] = plugin.Spec()
		if e := p.graph.Env(name); !e.Table.Isolated {
			t.Sources[name] = p.sourceOf(&e.Table)
		}
	}
	return t
}

func (p *Pipeline) sourceOf(t *EnvTable) component.EnvSource {
	use, _ := t.Locate(p.graph.Dir, p.options.Parts.Builtins)
	return component.EnvSource{
		Use: use, Args: t.Args, Grants: t.Grants,
		Memory: t.Limits.Memory, Step: t.Limits.Step, Init: t.Limits.Init,
	}
}

// Graph returns what the pipeline was built from.
func (p *Pipeline) Graph() *Graph { return p.graph }

// Stats returns the metrics of all components.
func (p *Pipeline) Stats() *stat.Registry { return p.stats }

// Close releases what Run has left: the plugins. Without a Run it releases everything.
func (p *Pipeline) Close() error {
	err := p.release()
	if p.loaded != nil {
		err = errors.Join(err, p.loaded.close())
	}
	return err
}

// release stops the components and closes the arenas, once; the loops must have ended. What leaked is in the
// error. Order matters: messages that nobody will get are dropped first, so that their blocks are no leaks.
func (p *Pipeline) release() error {
	var errs []error
	p.released.Do(func() {
		for _, w := range p.wires {
			for _, c := range w.connections {
				c.DisconnectNow()
			}
		}
		for _, l := range p.loops {
			errs = append(errs, l.Close())
		}
		for i := len(p.instances) - 1; i >= 0; i-- {
			x := p.instances[i]
			if err := x.component.Stop(); err != nil {
				errs = append(errs, fmt.Errorf("%s: stop: %w", x.host.Name, err))
			}
		}
		errs = append(errs, p.arenas.Close())
	})
	return errors.Join(errs...)
}
