// Package pipeline turns a TOML file into a checked graph of components and the graph into a running pipeline.
//
//	g, problems := pipeline.Parse("pipeline.toml", src, pipeline.ParseOptions{Parts: parts, Sets: sets})
//	fmt.Print(problems) // all of them, with file, line and column
//	p, err := pipeline.Build(ctx, g, pipeline.BuildOptions{Parts: parts})
//	reason, err := p.Run(ctx)
//	err = p.Close()
//
// Parse does everything that needs no plugin: it expands the preset that [train] names, merges the tables of the
// file over it key by key, applies --set arguments, lets each component decode and check its own table, resolves
// the wires, and refuses graphs that would stop moving. Build loads the environments and makes policies, components
// and connections; Run runs one goroutine for each event loop, in synchronous mode a single one, until a dataset
// boundary at which the run is to end.
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
// Locks, in the order in which they are taken: the token of standing (held by boundaries and by changes of instances),
// Transition.mu, life.mu; Pipeline.mu, ledger.mu; library.mu, liveness.mu. No loop waits for any of them but for
// moments, and none but the token is held while a component's methods run.
//
// BurntSushi/toml decodes the files. It tells no places, so a scanner of our own finds every key and value a second
// time (scan.go) and the two are paired, node by node (node.go); fuzzing holds them equal.
//
// It knows wiring, not work: which kinds of components, environments and policies exist is in the Parts that
// the program hands over. No plugin is imported here.
package pipeline
