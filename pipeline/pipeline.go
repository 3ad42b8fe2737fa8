package pipeline

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/core/trace"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loading"
	"github.com/rlhost/rlhost/pipeline/loops"
)

// BuildOptions configure how a graph is run.
type BuildOptions struct {
	Parts  *graph.Parts // as given to Parse
	RunDir string       // run folder, or empty
	Log    *slog.Logger // nil is silence
	// Resume is the state of instances by name, as a snapshot returned it. Instances without one start from scratch.
	Resume map[string]component.State
	// Stored finds the stored state of a frozen policy of a graph, for the policy made from it; see component.Host.Stored. nil finds nothing.
	Stored func(g *graph.Graph, policy string, made component.Policy) (component.State, error)
	// Resumes is how often the run has been resumed, this time included.
	Resumes int
	// Left is the previous run's Pipeline.Left: versions of these policies continue, should they be learned again.
	Left map[string]uint64
	// Policy is the leading one. In asynchronous mode the boundaries are its learner's, or any learner's if it has none. In
	// synchronous mode several learners share their boundaries: each has learned from a dataset, and none has one under way.
	Policy string
	// AtBoundary is called at dataset boundaries, on the loop of a learner, which waits for it; one at a time, and never
	// while instances are being replaced. snapshot may be called during the call only; see
	// Snapshot. An error ends the run. Pipeline.Stopping reports whether this boundary is the last. Of a run that is cut it is called
	// for the end, without a boundary: snapshot then has the instances of asynchronous mode, and its error says that it is not exact.
	AtBoundary func(snapshot func() (map[string]component.State, error)) error
	// AtFailure is called when an error has ended the run, before its components stop. snapshot has the states of all learners that
	// have one, and an error, which says that they are not exact.
	AtFailure func(snapshot func() (map[string]component.State, error)) error
	// Made is told how many environments have been made, of how many, while Build makes them and that takes long; nil does not listen. Any
	// goroutine.
	Made func(made, envs int)
	// Elsewhere has the instances that run on other hosts; nil: all run here.
	Elsewhere Elsewhere
	// Task is that of the environments' episodes. First has the index of the first environment of an instance, of the run's; nil: they follow one
	// another.
	Task  uint16
	First map[string]int
	// SoA is the layout of the blocks of components that run on other hosts; see component.Host.
	SoA map[string]bool
	// Tape records what the environments are given; nil: nothing does.
	Tape *tape.Ring
	// Begun numbers the instances; see component.Succession. It grows where a host builds the pipeline again.
	Begun int
	// Trace follows datasets; nil follows none.
	Trace *trace.Tracer
	// FreeDisk is how many bytes there is room for at the run's folder: Warnings says where the files may take more. 0: nobody knows.
	FreeDisk int64
	// Grace is how long an ending run may continue to reach a boundary before it is cut; 0 means 1.5 s.
	Grace time.Duration
}

// defaultGrace leaves a run that is cut half a second of two to save its state.
const defaultGrace = 1500 * time.Millisecond

// Pipeline is a graph with everything needed to run it. Use Build, Run once, Close. While it runs, Prepare
// changes it.
type Pipeline struct {
	running running
	starts
	options    BuildOptions
	making     making
	warnings   graph.Problems // of Build
	envCache   loading.Cache
	previous   map[string]*loading.Env // previous environments, by name; guarded by mu
	changes    *changeLock
	boundaries *boundaryLock
	round      round
	ending     ending
	still      stillness
	pauses     pauses
	taps       taps
	watch      watch
	steps      stepCounter
	released   sync.Once
	behind     chan struct{} // closed once the loops left running have ended and are released; nil: there are none
}

// runOf returns the component.Run that all components share.
func (o *BuildOptions) runOf(g *graph.Graph) *component.Run {
	return &component.Run{Name: g.Run.Name, Seed: g.Run.Seed, Policy: o.Policy, Dir: o.RunDir, Synchronous: g.Synchronous,
		Resumes: o.Resumes, Stop: g.Run.Stop, Tape: o.Tape}
}

// Close releases the plugins, which Run has left. Without a Run it releases everything. A prepared change is
// abandoned. Instances named by LeftBehind keep their plugins until they have ended.
func (p *Pipeline) Close() error {
	err := p.release()
	if p.behind == nil {
		return errors.Join(err, p.envCache.Close())
	}
	go func() {
		<-p.behind
		if err := p.envCache.Close(); err != nil {
			p.running.log.Warn("plugins of what was left", "error", err)
		}
	}()
	return err
}

// release stops the components and closes the arenas, once; the loops must have ended, or been abandoned. The error lists
// leaks. Order matters: messages that will not be delivered are dropped first, so that their blocks are no leaks.
func (p *Pipeline) release() (err error) {
	p.released.Do(func() {
		p.taps.end()
		p.round.suspend()
		left := p.running.loops.Left()
		if len(left) == 0 {
			err = p.releaseAll()
			return
		}
		p.running.log.Warn("the run ends without components that are still at one message", "components", strings.Join(p.LeftBehind(), ", "))
		p.behind = make(chan struct{})
		err = p.running.releaseBut(left)
		go func() {
			defer close(p.behind)
			for _, l := range left {
				<-l.Gone()
			}
			if err := p.releaseAll(); err != nil {
				p.running.log.Warn("what was left has ended", "error", err)
			}
		}()
	})
	return err
}

// releaseBut is releaseAll without the instances on some loops and everything they may still use.
func (r *running) releaseBut(left []*loops.Loop) error {
	for _, c := range r.connections() {
		c.DisconnectNow()
	}
	var errs []error
	for _, x := range slices.Backward(r.instancesAlive()) {
		if !slices.Contains(left, x.loop) {
			errs = append(errs, r.stop(x))
		}
	}
	return errors.Join(errs...)
}

func (p *Pipeline) releaseAll() error {
	var errs []error
	for _, l := range p.running.loops.All() {
		l.Finish() // loops that never ran
	}
	if t := p.changes.await(); t != nil {
		errs = append(errs, t.giveUp())
	}
	for _, c := range p.running.connections() {
		c.DisconnectNow()
	}
	for _, l := range p.running.loops.All() {
		errs = append(errs, l.Close())
	}
	for _, x := range slices.Backward(p.running.instancesAlive()) {
		errs = append(errs, p.running.stop(x))
	}
	return errors.Join(append(errs, p.running.arenas.Close())...)
}
