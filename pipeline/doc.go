// Package pipeline makes a running pipeline of a checked graph, and changes it while it runs.
//
//	p, err := pipeline.Build(ctx, g, pipeline.BuildOptions{Parts: parts})
//	reason, err := p.Run(ctx)
//	err = p.Close()
//
// Build loads the environments and makes policies, components and connections; Run runs one goroutine for each event loop,
// in synchronous mode a single one, until a dataset boundary at which the run is to end.
//
// A running pipeline can be changed into that of another graph:
//
//	next, problems := p.Graph().With([]string{"env.lander.use=./lander2.wasm"}, parts)
//	t, err := p.Prepare(ctx, next, pipeline.TransitionOptions{At: component.AtTrajectory, Probation: true})
//	outcome, err := t.Commit(ctx) // all of it, or nothing
//	t.Settle()                    // later: what ran before is let go of
//
// Prepare loads, checks, makes and starts what is new beside what runs. Commit makes instances that run environments go
// over at their boundaries, gives the places of instances to others made of other tables, adds and ends instances, and
// changes wires; what cannot be completed is taken back. An assembly is a graph with what was made of it, and is
// replaced as a whole, so that whoever looks at the run sees it before a change or after it.
//
// Locks, in the order in which they are taken: the token of boundaryLock (held by boundaries and by changes of instances),
// Transition.mu, changeLock.mu; running.mu, loopSet.mu, totals.mu; envCache.mu, liveness.mu. No loop waits for any of them but for
// moments, and none but the token is held while a component's methods run.
//
// It knows components by their manifests, not by their work, and imports no plugin: the graph.Parts that the program hands
// over make them.
package pipeline
