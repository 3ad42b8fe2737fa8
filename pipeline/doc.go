// Package pipeline builds a running pipeline from a checked graph, and changes it while it runs.
//
//	p, err := pipeline.Build(ctx, g, pipeline.BuildOptions{Parts: parts})
//	reason, err := p.Run(ctx)
//	err = p.Close()
//
// Build loads the environments and makes policies, components and connections; Run runs one goroutine for each event
// loop, in synchronous mode a single one, until a dataset boundary at which the run ends.
//
// A running pipeline can be changed into that of another graph:
//
//	next, err := p.Graph().With([]string{"env.lander.use=./lander2.wasm"}, parts)
//	t, err := p.Prepare(ctx, next, pipeline.TransitionOptions{At: component.AtTrajectory, Probation: true})
//	outcome, err := t.Commit(ctx) // all of it, or nothing
//	t.Settle()                    // later: releases the previous version
//
// Prepare loads, checks, makes and starts the new parts while the pipeline runs. Commit makes instances change
// environments at their boundaries, replaces instances whose tables differ, adds and ends instances, and changes
// wires; a change that cannot be completed is reverted. An assembly is a graph with its instances and connections,
// and is replaced as a whole, so that readers see the run before a change or after it.
//
// Locks, in the order in which they are taken: the token of boundaryLock (held by boundaries and by changes of
// instances), Transition.mu, changeLock.mu; running.mu, loops.Set's, totals.mu; loading.Cache's, liveness.mu. No loop waits
// long for any of them, and only the token is held while a component's methods run.
//
// It knows components by their manifests, not by their work, and imports no plugin: the program's graph.Parts make
// them.
package pipeline
