package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"

	"github.com/rlhost/rlhost/core/stat"
)

// defaultGrace is how long an interrupted run goes on at most to reach a dataset boundary.
const defaultGrace = 5 * time.Second

// BuildOptions say how a graph is run.
type BuildOptions struct {
	Parts  *graph.Parts // as given to Parse
	RunDir string       // run folder, or empty
	Log    *slog.Logger // nil is silence
	// Resume is the state of instances by name, as a snapshot returned it. Instances without one start anew.
	Resume map[string]component.State
	// Resumes is how often the run has been resumed, this time included.
	Resumes int
	// AtBoundary is called at dataset boundaries, on the learner's loop, which waits for it; of several learners
	// one at a time, and never while instances are being replaced. snapshot may be called during the call only; see
	// Snapshot. An error ends the run. Pipeline.Stopping tells whether this boundary is the last.
	AtBoundary func(snapshot func() (map[string]component.State, error)) error
	// Grace is how long an interrupted run goes on at most to reach a boundary; 0 means 5 s.
	Grace time.Duration
}

// Pipeline is a graph with everything that it takes to run. Use Build, Run once, Close. While it runs, Prepare
// changes it.
type Pipeline struct {
	options  BuildOptions
	log      *slog.Logger
	arenas   *arena.Set
	stats    *stat.Registry
	library  library
	warnings graph.Problems // of Build
	begun    atomic.Int64
	life     *life
	standing *standing
	ending   ending
	observed

	// state is what runs; it is replaced when a change has been made.
	state atomic.Pointer[assembly]

	mu       sync.Mutex // guards what follows
	alive    []*instance
	loops    []*runningLoop
	loopWork *loopWork          // how loops are run; nil before Run
	retired  []*ledger          // of wires that are no more
	leftover []*arena.Arena     // of nobody any more, and still claimed
	previous map[string]*volume // environments that ran before those of now, by name

	released sync.Once
}

// assembly is a graph and what was made of it. Once it runs it is not changed.
type assembly struct {
	*loaded
	graph   *graph.Graph
	run     *component.Run
	members []member // in the order of the graph
	wires   []*runningWire
}

// member is the place of an instance in a graph. The instance may have been made when the graph was another one.
type member struct {
	*instance
	of    *graph.Component
	index int
	name  string
}

// instance is one instance of a component.
type instance struct {
	p         *Pipeline
	component component.Component
	host      *component.Host
	loop      *runningLoop
	envs      int                      // environments that it has
	joining   atomic.Pointer[assembly] // what it was made for; nil since that runs

	bound atomic.Bool // it has its ports

	live liveness
}

// Build loads plugins, makes policies and components and connects them. Nothing runs yet. It blocks on files and
// on the compilation of plugins; ctx ends that. Errors that the file is to blame for are Problems. After an error
// everything has been released.
func Build(ctx context.Context, g *graph.Graph, o BuildOptions) (*Pipeline, error) {
	p := &Pipeline{options: o, log: o.Log, arenas: arena.NewSet(), stats: stat.NewRegistry(), life: newLife(), standing: newStanding(),
		previous: map[string]*volume{}}
	if p.log == nil {
		p.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if p.options.Grace <= 0 {
		p.options.Grace = defaultGrace
	}
	if p.options.Parts == nil {
		p.options.Parts = &graph.Parts{}
	}
	if err := p.build(ctx, g); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Pipeline) build(ctx context.Context, g *graph.Graph) error {
	a := &assembly{graph: g, run: p.runOf(g)}
	p.state.Store(a) // so that what is released after an error is known
	var err error
	if a.loaded, err = load(ctx, g, p.options.Parts, &p.library); err != nil {
		return err
	}
	p.warnings = a.loaded.warnings
	for i := range g.Components {
		of := &g.Components[i]
		for index := range of.Count {
			x, err := p.add(a, of, index, place{first: a.envs()})
			if err != nil {
				return err
			}
			a.members = append(a.members, member{x, of, index, of.InstanceName(index)})
		}
	}
	p.stats.Gauge("rollout/envs").Set(float64(a.envs()))
	for _, x := range a.members {
		if err := p.start(x.instance, x.of); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
	}
	if err := p.resume(a); err != nil {
		return err
	}
	for _, x := range a.members {
		x.joining.Store(nil)
	}
	return p.connect(a)
}

// runOf is what all components share.
func (p *Pipeline) runOf(g *graph.Graph) *component.Run {
	return &component.Run{Name: g.Run.Name, Seed: g.Run.Seed, Dir: p.options.RunDir, Synchronous: g.Synchronous,
		Resumes: p.options.Resumes, Stop: g.Run.Stop}
}

// now returns what runs.
func (p *Pipeline) now() *assembly { return p.state.Load() }

// place is what an instance has of its own in the run, besides its name.
type place struct {
	id        uint16                  // 0: the next that is free
	name      string                  // empty: as the graph has it
	first     int                     // global index of its first environment
	task      uint16                  // of its environments' episodes
	inherited map[string]*arena.Arena // of its predecessor; nil if it has none
	begun     int                     // see component.Host
	held      bool                    // nothing is handled before Release
	watch     *Transition             // that deals with its failures
}

// add makes one instance for an assembly, on its loop.
func (p *Pipeline) add(a *assembly, of *graph.Component, index int, at place) (*instance, error) {
	name := at.name
	if name == "" {
		name = of.InstanceName(index)
	}
	maker, err := a.graph.Maker(of, p.options.Parts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	made, err := maker()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	x := &instance{p: p, component: made, envs: of.Flow.Envs}
	x.joining.Store(a)
	x.live.watch, x.live.task, x.live.env = at.watch, at.task, a.plugins[of.Env]
	at.name = name
	x.host = p.hostOf(x, of, index, at)
	if err := x.component.Configure(of.Decode); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.enroll(x, of.LoopOf(index), at.held)
	return x, nil
}

// hostOf makes the host of an instance, but for the Receiver and an ID that is to be the next.
func (p *Pipeline) hostOf(x *instance, of *graph.Component, index int, at place) *component.Host {
	own := of.Name
	return &component.Host{
		Name: at.name, ID: at.id, Index: index, Count: of.Count, FirstEnv: at.first, Begun: at.begun, Again: p.again, Task: at.task, Inherited: at.inherited,
		Run: x.view().run, Arenas: p.arenas, Stats: p.stats,
		Log: p.log.With("component", at.name),
		Env: x.env, Policy: func(name string) (any, error) { return x.view().policy(name) },
		Peers:  func(kind string) int { return x.view().graph.InstancesByKind()[kind] },
		Tables: func() component.Tables { return x.view().tables(p.options.Parts) },
		Readers: func(signal string) int {
			n := x.view().graph.Readers(own, signal)
			x.live.asked(signal, n)
			return n
		},
		Boundary: func() { p.reach(x) }, Stop: func(reason component.StopReason) { p.stopFor(x, reason) },
		Failed: func(err error) bool { return p.failed(x, err) },
	}
}

// again is Host.Again.
func (p *Pipeline) again() int { return int(p.begun.Add(1)) }

// enroll gives an instance its loop, its receiver and its ID.
func (p *Pipeline) enroll(x *instance, loopName string, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x.loop = p.loopNamed(loopName)
	x.loop.instances++
	x.host.Receiver = x.loop.NewReceiver(x.host.Name)
	if held {
		x.host.Receiver.Hold()
	}
	if x.host.ID == 0 {
		x.host.ID = p.freeID()
	}
	p.alive = append(p.alive, x)
}

// freeID returns the lowest ID that no instance has. The caller holds mu.
func (p *Pipeline) freeID() uint16 {
	taken := map[uint16]bool{}
	for _, x := range p.alive {
		taken[x.host.ID] = true
	}
	id := uint16(1)
	for taken[id] {
		id++
	}
	return id
}

// view is the assembly that an instance belongs to.
func (x *instance) view() *assembly {
	if a := x.joining.Load(); a != nil {
		return a
	}
	return x.p.now()
}

// env is Host.Env.
func (x *instance) env(name string) (env.Plugin, error) {
	v := x.view().plugins[name]
	if v == nil {
		return nil, fmt.Errorf("env %q is not declared", name)
	}
	x.live.uses(v)
	return v.plugin, nil
}

// envs returns how many environments the members have, and the index behind the last one.
func (a *assembly) envs() int {
	n := 0
	for _, x := range a.members {
		n = max(n, x.host.FirstEnv+x.instance.envs)
	}
	return n
}

// start gives an instance its ports and starts it.
func (p *Pipeline) start(x *instance, of *graph.Component) error {
	m := x.component.Manifest()
	x.host.Bind(m)
	x.bound.Store(true)
	if err := x.component.Start(x.host); err != nil {
		return err
	}
	for _, port := range m.Slots {
		if x.host.BoundSlot(port.Name) == nil {
			return fmt.Errorf("kind %s does not bind its slot %q", of.Kind, port.Name)
		}
	}
	return nil
}

// resume restores what the options have state of.
func (p *Pipeline) resume(a *assembly) error {
	left := len(p.options.Resume)
	for _, x := range a.members {
		state, ok := p.options.Resume[x.name]
		if !ok {
			continue
		}
		left--
		if err := x.component.Restore(state); err != nil {
			return fmt.Errorf("%s: restore: %w", x.name, err)
		}
	}
	if left > 0 {
		return fmt.Errorf("the saved state has %d components that the pipeline does not have", left)
	}
	return nil
}

// Env returns the loaded environment that runs now. It is open until another version of it has been committed and
// settled, or Close.
func (p *Pipeline) Env(name string) (env.Plugin, error) {
	if v := p.now().plugins[name]; v != nil {
		return v.plugin, nil
	}
	return nil, fmt.Errorf("env %q is not declared", name)
}

// Policy returns what Parts.Policy made of a [policy.NAME] table.
func (p *Pipeline) Policy(name string) (any, error) { return p.now().policy(name) }

func (a *assembly) policy(name string) (any, error) {
	if made, ok := a.policies[name]; ok {
		return made, nil
	}
	return nil, fmt.Errorf("policy %q is not declared", name)
}

// tables returns what components that run elsewhere are told of the file.
func (a *assembly) tables(parts *graph.Parts) component.Tables {
	t := component.Tables{
		Policies: map[string]component.PolicyTable{}, Envs: map[string]hostabi.EnvSpec{}, Peers: a.graph.InstancesByKind(),
		Sources: map[string]component.EnvSource{},
	}
	for i := range a.graph.Policies {
		x := &a.graph.Policies[i]
		t.Policies[x.Name] = component.PolicyTable{Env: x.Env, Table: x.Plain()}
	}
	for name, v := range a.plugins {
		t.Envs[name] = v.plugin.Spec()
		if e := a.graph.Env(name); !e.Table.Isolated {
			t.Sources[name] = a.graph.SourceOf(&e.Table, parts)
		}
	}
	return t
}

// Graph returns the graph that runs. It is another one after a change.
func (p *Pipeline) Graph() *graph.Graph { return p.now().graph }

// Stats returns the metrics of all components.
func (p *Pipeline) Stats() *stat.Registry { return p.stats }
