package session

import (
	"context"
	"log/slog"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// commandOptions describe the run that commands act on. All but the last six are needed.
type commandOptions struct {
	Pipeline *pipeline.Pipeline
	Run      *runs.Run // locked
	Parts    *graph.Parts
	Log      *slog.Logger
	// Text returns a graph as in pipeline.toml of the run's folder: with paths relative to that folder.
	Text func(*graph.Graph) ([]byte, error)
	// Checkpoint saves one at the next dataset boundary and returns once it is saved.
	Checkpoint func(context.Context) (control.CheckpointReply, error)
	// Stop asks the run to end, at its next dataset boundary or at once. LastCheckpoint returns the checkpoint that it
	// ended with, once it has, or nil.
	Stop           func(now bool)
	LastCheckpoint func() *control.CheckpointReply

	Made func(number uint64) // takes the number of a change that is complete, before the next boundary

	Begins      bool          // the run was not resumed: it runs what its file says
	Policy      string        // the leading one
	StepsBefore uint64        // env steps that the run had made before this process
	Records     *runs.LogFile // the run's log, or nil
	Socket      string        // where to listen; empty is control.SocketPath of the run's folder

	Hosts func() []control.HostStatus // or nil
}

// live is the commanded run as it is now.
type live struct {
	commandOptions
	log     *slog.Logger
	started time.Time
}

func (l *live) envSteps() uint64 {
	return l.StepsBefore + l.Pipeline.Stats().Counter("rollout/env_steps").Value()
}

// gauge is the value of a gauge, or nil while that has none, as the mean of a window that is not full.
func (l *live) gauge(name string) *float64 {
	for _, s := range l.Pipeline.Stats().Snapshot() {
		if s.Name == name && !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			return &s.Value
		}
	}
	return nil
}

// restarts counts how often the processes of components were started again.
func (l *live) restarts(parts []part) map[string]uint64 {
	counts := map[string]uint64{}
	for _, p := range parts {
		counts[p.component] = 0
	}
	for _, s := range l.Pipeline.Stats().Snapshot() {
		name, ok := strings.CutPrefix(s.Name, "process/restarts/")
		if !ok {
			continue
		}
		if _, wanted := counts[componentOf(name)]; wanted {
			counts[componentOf(name)] += uint64(s.Value)
		}
	}
	return counts
}

// moduleOf returns the module file of an environment; ok is false if it has none.
func (l *live) moduleOf(g *graph.Graph, e *graph.Env) (path string, ok bool) {
	if e.Table.Plugin != nil || slices.Contains(l.Parts.Builtins, e.Table.Use) {
		return "", false
	}
	path, _ = e.Table.Locate(g.Dir, l.Parts.Builtins)
	abs, err := filepath.Abs(path)
	return abs, err == nil
}

// runsModule reports whether an environment is that module already.
func (l *live) runsModule(env *graph.Env, hash string) bool {
	if env.Table.Plugin != nil {
		return false
	}
	plugin, err := l.Pipeline.Env(env.Name)
	return err == nil && plugin.Hash() == hash
}

// envPrefix begins the name of an environment where a component is expected; the component that steps it is meant.
const envPrefix = "env."

// componentNamed returns the component of that name, or the first one that steps the environment of a name such as env.cartpole: its
// other rollouts change with it. It is nil if there is none.
func componentNamed(g *graph.Graph, name string) *graph.Component {
	env, isEnv := strings.CutPrefix(name, envPrefix)
	if !isEnv {
		return g.Component(name)
	}
	i := slices.IndexFunc(g.Components, func(c graph.Component) bool { return c.Env == env && env != "" })
	if i < 0 {
		return nil
	}
	return &g.Components[i]
}

// named returns a component of the running graph; see componentNamed.
func (l *live) named(name string) (*graph.Component, error) {
	g := l.Pipeline.Graph()
	if c := componentNamed(g, name); c != nil {
		return c, nil
	}
	if env, ok := strings.CutPrefix(name, envPrefix); ok {
		e := control.Errorf(control.CodeUnknown, "no component steps an environment %q", env)
		var names []string
		for i := range g.Envs {
			names = append(names, envPrefix+g.Envs[i].Name)
		}
		e.Help = "there are " + strings.Join(names, ", ")
		return nil, e
	}
	e := control.Errorf(control.CodeUnknown, "there is no component %q", name)
	if whole := g.Component(componentOf(name)); whole != nil {
		e.Help = "its instances go together: rlhost swap " + whole.Name
		return nil, e
	}
	var names []string
	for i := range g.Components {
		names = append(names, g.Components[i].Name)
	}
	e.Help = "there are " + strings.Join(names, ", ")
	return nil, e
}

// onMessages waits until done returns true. It is called at once, and whenever a component has sent a message of that
// payload. The end of ctx or of the run ends the wait; ended may be nil.
func (l *live) onMessages(ctx context.Context, payload string, ended <-chan struct{}, done func() bool) error {
	sent := make(chan struct{}, 1)
	for _, c := range l.Pipeline.Graph().Components {
		for _, port := range c.Manifest.Signals {
			if port.Payload != payload {
				continue
			}
			cancel, err := l.Pipeline.Tap(component.Qualified(c.Name, port.Name), false, func(string, string, *hostabi.Message, *arena.Set) {
				select {
				case sent <- struct{}{}:
				default: // done has not been called since the last one
				}
			})
			if err != nil {
				return err
			}
			defer cancel()
		}
	}
	for !done() {
		select {
		case <-sent:
		case <-ended:
			return pipeline.ErrEnded
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// mayChange refuses changes of parts that the pipeline forbids to swap.
func (l *live) mayChange(changes []control.Change) error {
	g := l.Pipeline.Graph()
	for _, c := range changes {
		var names []string
		switch c.What {
		case changeEnv:
			if e := g.Env(c.Name); e != nil && e.Swap == graph.SwapNever {
				return forbidden("env", c.Name)
			}
			names = runnersOf(g, c.Name)
		case changeComponent:
			names = []string{componentOf(c.Name)}
		}
		i := slices.IndexFunc(names, func(name string) bool {
			x := g.Component(name)
			return x != nil && x.Swap == graph.SwapNever
		})
		if i >= 0 {
			return forbidden("component", names[i])
		}
	}
	return nil
}
