package member

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trace"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// askEvery is how often a host asks for its state, where nothing was told meanwhile.
const askEvery = 500 * time.Millisecond

// part runs a share of the instances of a run on a joined host.
type part struct {
	work        *workReply
	share       share
	graph       *graph.Graph
	key         string
	incarnation uint64
	log         *slog.Logger
	ctx         context.Context
	stop        context.CancelCauseFunc
	link        atomic.Pointer[cluster.Link]
	told        chan hostState
	tasks       sync.WaitGroup
	arenas      *arena.Set // once a stand has started
	ending      sync.Once
	built       *pipeline.Pipeline
	weights     *shelf        // of the host
	trace       *trace.Tracer // nil where no datasets are traced
	parts       *graph.Parts
	cache       *Cache
	files       getter
	programs    Programs
	allowing    *allowing
	changing    sync.Mutex    // held from the preparation of a change to its commit
	wishes      chan struct{} // holds one: wished is newer than what has been done

	mu      sync.Mutex
	streams map[uint16]*stream
	edges   map[string]*edge // that publish weights, by their names
	stands  []*edge
	changes map[uint64]*partChange // by their numbers
	wished  rest
	unrest  func() // ends the waiting for what was wished before
}

var _ pipeline.Elsewhere = (*part)(nil)

// Away is pipeline.Elsewhere's.
func (p *part) Away(instance string) bool { return !slices.Contains(p.share.Instances, instance) }

// Host is pipeline.Elsewhere's.
func (p *part) Host(instance string) string {
	if slices.Contains(p.work.Away, instance) {
		return "another"
	}
	return ownHost
}

// Stand is pipeline.Elsewhere's.
func (p *part) Stand(name string, of *graph.Component, made component.Component) component.Component {
	return &edge{stand: stand{made}, part: p, of: of, owners: p.Host(name) == ownHost}
}

// Prepare is pipeline.Elsewhere's: the owner has checked the change.
func (p *part) Prepare(*graph.Graph) error { return nil }

// Install is pipeline.Elsewhere's.
func (p *part) Install(pipeline.Installed) {}

// Release is pipeline.Elsewhere's.
func (p *part) Release() {}

// LostSteps is pipeline.Elsewhere's: the owner counts them.
func (p *part) LostSteps() uint64 { return 0 }

func (p *part) fail(err error) { p.stop(err) }

// streamOf returns the stream of an instance of this host.
func (p *part) streamOf(id uint16) *stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.streams[id]
	if s == nil {
		s = &stream{part: p, id: id, items: map[uint64]item{}}
		p.streams[id] = s
	}
	return s
}

// run builds the instances and runs them until ctx ends.
func (p *part) run() error {
	p.files = getter{ctx: p.ctx, cache: p.cache, ask: func(ctx context.Context, q pieceRequest) ([]byte, error) {
		return p.link.Load().Ask(ctx, cluster.SubjectUp(p.key, verbPiece), encode(q))
	}}
	defer p.files.letGo()
	p.allowing = &allowing{parts: p.parts, own: &sent{absent: p.work.Absent}, programs: p.programs}
	p.parts = p.allowing.limited()
	var err error
	if p.graph, err = p.parse(p.work.Text, p.work.Pieces, p.work.Programs); err != nil {
		return err
	}
	if p.graph.Run.Traces != "" {
		p.trace = trace.NewFar(p.loaded)
	}
	built, err := pipeline.Build(p.ctx, p.graph, pipeline.BuildOptions{
		Parts: p.parts, Log: p.log, Elsewhere: p, Begun: p.share.Begun, Resumes: p.work.Resumes, Task: p.work.Task, First: p.work.First, SoA: p.work.SoA,
		Grace: time.Millisecond, Trace: p.trace,
	})
	if err != nil {
		return p.allowing.why(err)
	}
	p.built = built
	p.tasks.Go(p.follow)
	p.tasks.Go(p.obey)
	_, err = built.Run(p.ctx)
	ended := context.Cause(p.ctx)
	p.stop(nil)
	p.tasks.Wait()
	if errors.Is(ended, context.Canceled) {
		ended = nil
	}
	return errors.Join(ended, err, built.Close())
}

// loaded tells the owner that weights have been loaded here. A span that is lost on its way is not in its trace.
func (p *part) loaded(s trace.Span) {
	p.link.Load().Say(cluster.SubjectUp(p.key, verbLoaded), encode(loadedReply{s.Component, s.Policy, s.Version, s.To.Sub(s.From)}))
}

// parse gets the files of a pipeline, and reads it.
func (p *part) parse(text string, files []piece, programs map[string]string) (*graph.Graph, error) {
	paths, err := p.files.all(files)
	if err != nil {
		return nil, err
	}
	p.allowing.own.add(paths, programs)
	g, err := graph.Parse("pipeline.toml", []byte(text), parseOptions(p.parts, paths))
	if err != nil {
		return nil, p.allowing.why(err)
	}
	return g, nil
}

// parseOptions are how a host reads the pipeline of a run: neither other files of this host nor variables of its environment are in it.
func parseOptions(parts *graph.Parts, paths map[string]string) graph.ParseOptions {
	return graph.ParseOptions{
		Parts: parts, Sets: setsOf(paths),
		Read:   func(path string) ([]byte, error) { return nil, fmt.Errorf("%s: a run has one file", path) },
		Getenv: func(string) (string, bool) { return "", false },
	}
}

// follow does what the owner tells, until the part ends.
func (p *part) follow() {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	ask := true
	for p.ctx.Err() == nil {
		if ask {
			p.ask()
		}
		select {
		case <-p.ctx.Done():
		case s := <-p.told:
			ask = false
			p.apply(s)
		case <-ticker.C:
			ask = true
		}
	}
}

// ask asks the owner for the state.
func (p *part) ask() {
	ctx, stop := context.WithTimeout(p.ctx, leaseTime)
	defer stop()
	text, err := p.link.Load().Ask(ctx, cluster.SubjectUp(p.key, verbState), []byte("{}"))
	var s hostState
	if err == nil && json.Unmarshal(text, &s) == nil {
		p.apply(s)
	}
}

// hear takes what the owner tells. Numbers in it only grow: of two that wait the newer one counts.
func (p *part) hear(s hostState) {
	for {
		select {
		case p.told <- s:
			return
		default:
		}
		select {
		case <-p.told:
		default:
		}
	}
}

// apply gives blocks back that are free at the owner, and takes new weights. In synchronous mode a new block begins with the weights that were
// there when the former one became free.
func (p *part) apply(s hostState) {
	p.wish(s.Rest)
	p.order(s.Orders)
	for name, w := range s.bodies {
		if e := p.edge(name); e != nil && e.emit(w) != nil {
			return // the part ends
		}
	}
	if !p.graph.Synchronous {
		p.free(s)
	}
	for name, version := range s.Weights {
		e := p.edge(name)
		if e == nil || e.newest.Load() >= version+1 {
			continue
		}
		if err := e.fetch(version); err != nil {
			return // it is asked again
		}
	}
	if p.graph.Synchronous {
		p.free(s)
	}
}

// edge returns what stands for an instance that publishes weights, nil for none.
func (p *part) edge(name string) *edge {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.edges[name]
}

func (p *part) free(s hostState) {
	for _, f := range s.Freed {
		if f.Share == p.share.Number {
			p.streamOf(p.idOf(f.Instance)).free(f.Blocks)
		}
	}
}

// end closes the streams.
func (p *part) end() {
	p.ending.Do(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, s := range p.streams {
			s.close()
		}
	})
}

// move makes the part use another link.
func (p *part) move(link *cluster.Link) error {
	p.link.Store(link)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.streams {
		s.mu.Lock()
		out := s.out
		s.mu.Unlock()
		if out != nil {
			if err := out.Move(link); err != nil {
				return err
			}
		}
	}
	return nil
}

// edge stands on a joined host for an instance that runs elsewhere: it sends what that is to get, and emits the weights that it publishes.
type edge struct {
	stand
	part   *part
	of     *graph.Component
	owners bool // it runs on the run's own host
	h      *component.Host

	newest    atomic.Uint64 // version + 1 of the weights that were emitted
	weights   *bus.Signal
	arena     *arena.Arena
	published hostabi.Handle
}

var _ component.Component = (*edge)(nil)

// Start binds the slots.
func (e *edge) Start(h *component.Host) error {
	e.part.arenas, e.h = h.Arenas, h
	e.part.mu.Lock()
	e.part.stands = append(e.part.stands, e)
	e.part.mu.Unlock()
	e.bind(h, func(port *component.Port) func(*hostabi.Message) {
		signals := e.carries(port)
		if len(signals) == 0 {
			return nil
		}
		return func(m *hostabi.Message) {
			signal, ok := signals[m.Sender]
			if !ok {
				return
			}
			m.Signal = signal
			if err := e.part.streamOf(m.Sender).take(m); err != nil {
				h.Fail(err)
			}
		}
	})
	for _, port := range e.made.Manifest().Signals {
		if component.PayloadOf(port.Payload).Publishes {
			e.weights = h.Signal(port.Name)
			e.part.mu.Lock()
			e.part.edges[h.Name] = e
			e.part.mu.Unlock()
		}
	}
	return nil
}

// carries returns the signals whose messages for a port go to the owner by way of this instance, by the IDs of their senders: of several
// receivers of one signal one carries them.
func (e *edge) carries(port *component.Port) map[uint16]uint16 {
	signals := map[uint16]uint16{}
	if !e.owners {
		return signals
	}
	wires := e.part.graph.Wires
	for i := range wires {
		w := &wires[i]
		if w.To != e.of.Name || w.Slot != port.Name || component.PayloadOf(w.Payload).OnLoan || w.Mode != bus.Queue && e.h.Index > 0 {
			continue
		}
		if slices.ContainsFunc(wires[:i], func(o graph.Wire) bool { return o.From == w.From && o.Signal == w.Signal }) {
			continue
		}
		index, _ := e.part.graph.Component(w.From).Manifest.Signal(w.Signal)
		for _, id := range e.part.idsOf(w.From) {
			signals[id] = uint16(index)
		}
	}
	return signals
}

// idsOf returns the IDs of a component's instances on this host.
func (p *part) idsOf(name string) (ids []uint16) {
	x := p.graph.Component(name)
	for index := range x.Count {
		if instance := x.InstanceName(index); !p.Away(instance) {
			ids = append(ids, p.idOf(instance))
		}
	}
	return ids
}

// names returns the names of all instances: a pipeline gives IDs in that order, from 1.
func (p *part) names() (list []string) {
	for i := range p.graph.Components {
		x := &p.graph.Components[i]
		for index := range x.Count {
			list = append(list, x.InstanceName(index))
		}
	}
	return list
}

// idOf returns the ID of an instance; 0 for one that is none.
func (p *part) idOf(instance string) uint16 { return uint16(slices.Index(p.names(), instance) + 1) }

func (p *part) nameOf(id uint16) string { return p.names()[id-1] }

// fetch gets weights from a version on, and emits them.
func (e *edge) fetch(version uint64) error {
	w, err := e.part.weights.atLeast(e.part.ctx, e.h.Name, version, func() (weights, error) { return e.part.weightsOf(e.h.Name) })
	if err != nil {
		return err
	}
	return e.emit(w)
}

// emit emits weights, unless newer ones were. It returns once the loop has.
func (e *edge) emit(w weights) error {
	if w.number+1 <= e.newest.Load() {
		return nil
	}
	done := make(chan struct{})
	e.h.Receiver.Control(loop.Func(func(*hostabi.Message) {
		defer close(done)
		if err := e.publish(w.number, w.bytes); err != nil {
			e.h.Fail(err)
		}
	}), hostabi.Message{})
	select {
	case <-done:
		return nil
	case <-e.part.ctx.Done():
		return e.part.ctx.Err()
	}
}

// publish emits a version of the weights. It runs on the loop.
func (e *edge) publish(number uint64, bytes []byte) error {
	if e.arena == nil {
		a, err := e.h.Arenas.Add(arena.Config{
			Name: e.h.Name + ".weights", BlockBytes: len(bytes), Blocks: component.WeightBlocks(e.h.Readers(e.weights.Name())), ReadOnly: true,
		})
		if err != nil {
			return err
		}
		e.h.Own(a)
		e.arena = a
	}
	if len(bytes) != e.arena.BlockBytes() {
		return fmt.Errorf("version %d has %d bytes, the former one %d", number, len(bytes), e.arena.BlockBytes())
	}
	loan, err := e.arena.Loan()
	if err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	copy(loan.Bytes(), bytes)
	h, err := loan.Commit()
	if err != nil {
		return err
	}
	if e.published != 0 {
		err = e.arena.Release(e.published)
	}
	e.published = h
	e.newest.Store(number + 1)
	return errors.Join(err, e.weights.Emit(hostabi.Message{Handle: h, PolicyVersion: number}))
}

// Stop ends the streams of the part and releases the weights.
func (e *edge) Stop() error {
	e.part.end()
	if e.published == 0 {
		return nil
	}
	return e.arena.Release(e.published)
}

// weightsOf gets the newest weights that a component publishes, part by part. A newer version that comes meanwhile is got from its first part.
func (p *part) weightsOf(publisher string) (w weights, err error) {
	for part := 0; part == 0 || len(w.bytes) < cap(w.bytes); part++ {
		ctx, stop := context.WithTimeout(p.ctx, leaseTime)
		reply, err := p.link.Load().Ask(ctx, cluster.SubjectUp(p.key, verbWeights), encode(weightsRequest{publisher, part}))
		stop()
		if err != nil {
			return weights{}, err
		}
		if len(reply) < partHead {
			return weights{}, errFrame
		}
		version, size := binary.LittleEndian.Uint64(reply), binary.LittleEndian.Uint64(reply[8:])
		switch {
		case size == 0 || size > maxWeights:
			return weights{}, fmt.Errorf("weights of %d bytes", size)
		case part > 0 && (version != w.number || size != uint64(cap(w.bytes))):
			part, w.bytes = -1, nil
			continue
		case part == 0:
			w = weights{version, make([]byte, 0, size)}
		}
		if n := len(reply) - partHead; n == 0 || n > cap(w.bytes)-len(w.bytes) {
			return weights{}, errFrame
		}
		w.bytes = append(w.bytes, reply[partHead:]...)
	}
	return w, nil
}

// maxWeights bounds the bytes of one version.
const maxWeights = 4 << 30
