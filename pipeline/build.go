package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/fit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
)

// Build loads plugins, makes policies and components and connects them. Nothing runs yet. It blocks on files and
// on the compilation of plugins, until ctx ends. Errors in the file are Problems. After an error everything has
// been released.
func Build(ctx context.Context, g *graph.Graph, o BuildOptions) (*Pipeline, error) {
	p := &Pipeline{options: o, changes: newChangeLock(), boundaries: newBoundaryLock(), previous: map[string]*loading.Env{}}
	p.running.left = maps.Clone(o.Left)
	p.running.log, p.running.arenas, p.running.stats, p.running.loops.OnError = o.Log, arena.NewSet(), stat.NewRegistry(), p.endLoops
	p.ending.stop, p.steps.stop = p.Stop, p.Stop
	p.steps.elsewhere = o.Elsewhere
	p.pauses.running, p.taps.running, p.steps.running, p.watch.running = &p.running, &p.running, &p.running, &p.running
	p.round.running, p.running.ledger = &p.running, newLedger(p.running.policies)
	p.pauses.changes, p.watch.changes = p.changes, p.changes
	p.pauses.settled = p.betweenDatasets
	p.watch.ending, p.watch.pauses, p.watch.looked = &p.ending, &p.pauses, func() { p.endWait(); p.demand(); p.tellStill() }
	if p.running.log == nil {
		p.running.log = slog.New(slog.NewTextHandler(io.Discard, nil))
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
	a := &assembly{graph: g, run: p.options.runOf(g)}
	p.running.state.Store(a) // so that release after an error finds it
	var err error
	if a.Set, p.warnings, err = load(ctx, g, p.options.Parts, &p.envCache); err != nil {
		return err
	}
	if p.options.FreeDisk > 0 {
		p.warnings = append(p.warnings, filesTooLarge(g, fit.Of(g, a.Plugins(), a.Policies).Disk(fit.Rates{}), p.options.FreeDisk)...)
	}
	for i := range g.Components {
		of := &g.Components[i]
		for index := range of.Count {
			first, known := p.options.First[of.InstanceName(index)]
			if !known {
				first = a.envs()
			}
			x, err := p.add(a, of, index, placement{first: first, begun: p.options.Begun, task: p.options.Task, published: p.running.publishedOf(of)})
			if err != nil {
				return err
			}
			a.members = append(a.members, member{x, of, index, of.InstanceName(index)})
		}
	}
	p.running.stats.Gauge("rollout/envs").Set(float64(a.envs()))
	p.making.begin(a.envs(), p.options.Made)
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
	p.running.place(a)
	if err := a.connect(); err != nil {
		return err
	}
	a.tell(p.options.Elsewhere)
	return nil
}

// add makes one instance for an assembly, on its loop.
func (p *Pipeline) add(a *assembly, of *graph.Component, index int, at placement) (*instance, error) {
	at.name = cmp.Or(at.name, of.InstanceName(index))
	maker, err := a.graph.Maker(of, p.options.Parts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at.name, err)
	}
	made, err := maker()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at.name, err)
	}
	host, made := p.options.stand(of, index, made)
	x := &instance{run: &p.running, component: made, of: of, envs: of.Flow.Envs, hostOf: host}
	x.joining.Store(a)
	x.live.watches, x.live.task, x.live.env = at.watches, at.task, a.Envs[of.Env]
	x.host = p.hostOf(x, of, index, at)
	if err := x.component.Configure(of.Decode); err != nil {
		return nil, fmt.Errorf("%s: %w", at.name, err)
	}
	p.running.enroll(x, of.LoopOf(index), at.held)
	return x, nil
}

// hostOf makes the host of an instance, without the Receiver, and without an ID if it will get the next free one.
func (p *Pipeline) hostOf(x *instance, of *graph.Component, index int, at placement) *component.Host {
	return &component.Host{
		Name: at.name, ID: at.id, Index: index, Count: of.Count, Place: x.view().graph.PlaceOf(of),
		Succession: component.Succession{FirstEnv: at.first, Begun: at.begun, Again: p.running.again, Task: at.task, Inherited: at.inherited,
			Abrupt: at.abrupt, Published: at.published},
		Run: x.view().run, Arenas: p.running.arenas, Stats: p.running.stats,
		Log: p.running.log.With("component", at.name), Trace: p.options.Trace,
		Env: x.env, Policy: func(name string) (component.Policy, error) { return x.view().policy(name) },
		Stored:   func(name string) (component.State, error) { return p.options.stored(x.view(), name) },
		PolicyOf: p.running.policyOf, ActsIn: func(policy string) int { return p.running.now().actsIn(policy) },
		Peers:  func(kind string) int { return x.view().graph.InstancesByKind()[kind] },
		Tables: func() component.Tables { return x.view().tables(p.options.Parts) },
		Readers: func(signal string) int {
			n := x.view().graph.Readers(of.Name, signal)
			x.live.asked(signal, n)
			return n
		},
		SoA: func() (soa, known bool) {
			if soa, known = p.running.soa(of.Name); !known {
				soa, known = p.options.SoA[of.Name]
			}
			return soa, known
		},
		Grants: x.view().graph.Grants(of.Name), Written: x.view().graph.Written(of.Name),
		Boundary: func() { p.reach(x) }, Stop: func(reason component.StopReason) { p.stopFor(x, reason) },
		Failed: func(err error) bool { return p.failed(x, err) }, ProcessChanged: p.starts.tell, Made: p.making.add,
		Loaded: p.envCache.Describe,
		Takes: func(port component.Port) func(m *hostabi.Message) {
			return x.takes(p, &port)
		},
		Keeps: func() func([]hostabi.Message) { return p.steps.keeps(x, of) },
		Steps: p.steps.tell, AskOther: x.askOther,
	}
}

// stored is Host.Stored.
func (o *BuildOptions) stored(a *assembly, policy string) (component.State, error) {
	if o.Stored == nil {
		return component.State{}, fmt.Errorf("policy %q: nothing is stored where no run is", policy)
	}
	made, err := a.policy(policy)
	if err != nil {
		return component.State{}, err
	}
	return o.Stored(a.graph, policy, made)
}

// start gives an instance its ports, which must be the checked ones, and starts it.
func (p *Pipeline) start(x *instance, of *graph.Component) error {
	m := x.component.Manifest()
	if !m.SamePorts(&of.Manifest) {
		return fmt.Errorf("kind %s has other signals or slots than when the file was checked", of.Kind)
	}
	x.host.Bind(m)
	for place, port := range m.Signals {
		switch payload := component.PayloadOf(port.Payload); {
		case payload.Steps:
			p.steps.sends(x, place, x.host.Signal(port.Name))
		case payload.Learned:
			p.steps.cuts(x, x.host.Signal(port.Name))
		}
	}
	x.asks(&m)
	x.bound.Store(true)
	if err := x.component.Start(x.host); err != nil {
		return err
	}
	for _, port := range m.Slots {
		if x.host.BoundSlot(port.Name) == nil {
			return fmt.Errorf("kind %s does not bind its slot %q", of.Kind, port.Name)
		}
	}
	for i := range m.Requests {
		if name := m.Requests[i].Name; x.host.Handles(name) == nil {
			return fmt.Errorf("kind %s does not bind its request %q", of.Kind, name)
		}
	}
	return nil
}

// resume restores the instances that the options have state for. Lasting state is for any instance of its component.
func (p *Pipeline) resume(a *assembly) error {
	left := 0
	for _, state := range p.options.Resume {
		if !state.OnlyLasting() {
			left++
		}
	}
	for _, x := range a.members {
		state, ok := p.options.Resume[x.name]
		if ok && !state.OnlyLasting() {
			left--
		}
		if !ok {
			state, ok = p.options.lastingOf(x.of)
		}
		if !ok {
			continue
		}
		if err := x.component.Restore(state); err != nil {
			return fmt.Errorf("%s: restore: %w", x.name, err)
		}
	}
	if left > 0 {
		return fmt.Errorf("the saved state has %d components that the pipeline does not have", left)
	}
	return nil
}

// lastingOf returns the lasting state of the first saved instance of a component.
func (o *BuildOptions) lastingOf(of *graph.Component) (part component.State, ok bool) {
	if of.Flow.Envs == 0 {
		return part, false
	}
	for _, name := range []string{of.Name, of.Name + "[0]"} {
		if part, ok = o.Resume[name].Lasting(); ok {
			break
		}
	}
	return part, ok
}

// connect makes the connections of all wires of a pipeline that is being built.
func (a *assembly) connect() error {
	for i := range a.graph.Wires {
		w := &runningWire{wire: &a.graph.Wires[i], totals: &totals{}}
		a.wires = append(a.wires, w)
		for _, pair := range pairsOf(w.wire, a.members) {
			l, err := connect(w.wire, pair)
			if err != nil {
				return err
			}
			w.links = append(w.links, l)
		}
	}
	return nil
}

// stopFor is Host.Stop. A replacement may find that the run must end, for instance by its own stop rule: then the
// change is completed first.
func (p *Pipeline) stopFor(x *instance, reason component.StopReason) {
	by, _ := x.live.watched()
	if !slices.ContainsFunc(by, func(t probation) bool { return t.waits(reason) }) {
		if reason == component.StopOwn {
			p.running.log.Info("a component asks the run to end", "component", x.host.Name)
		}
		p.Stop(reason)
	}
}

// failed is Host.Failed.
func (p *Pipeline) failed(x *instance, err error) bool {
	by, gone := x.live.watched()
	if gone {
		p.running.log.Warn("an instance that was replaced failed", "component", x.host.Name, "err", err)
		return true
	}
	if p.changes.over() != nil {
		return false
	}
	for _, t := range slices.Backward(by) {
		if t.onFault(x.host.Name, err) {
			x.stand(err)
			t.tell()
			return true
		}
	}
	return false
}

// collect closes plugins that are not in use and that no rollback needs.
func (p *Pipeline) collect() error {
	p.running.tidy()
	wanted := map[*loading.Env]bool{}
	note := func(v *loading.Env) { wanted[v] = true }
	p.running.now().eachEnv(note)
	if t := p.changes.pending(); t != nil && !t.uses(note) {
		return nil // it may have found or loaded any; unused ones are closed when it ends
	}
	p.running.mu.Lock()
	for _, v := range p.previous {
		note(v)
	}
	p.running.mu.Unlock()
	alive := p.running.instancesAlive()
	err := p.envCache.Keep(func(v *loading.Env) bool {
		return wanted[v] || slices.ContainsFunc(alive, func(x *instance) bool { return x.live.holds(v) })
	})
	if err != nil {
		return fmt.Errorf("close plugins: %w", err)
	}
	return nil
}
