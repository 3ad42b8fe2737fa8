// Package session is a training as a library: it begins or resumes one, saves checkpoints, answers commands, and evaluates
// what came out.
//
//	parts, engines := builtin.New(builtin.Options{Log: log})
//	g, err := graph.Parse(file, text, graph.ParseOptions{Parts: parts})
//	result, err := session.Train(ctx, session.Options{Parts: parts, Graph: g})
//	err = engines.Close()
//
// It prints nothing: an observer is told what happens, a log what goes wrong. What runs a pipeline is package pipeline's
// business, what may run in one comes with graph.Parts. Commands come over the control socket of the run's folder while
// Run goes on.
//
// A change is one flow, whoever asks for it: the next graph is checked, its plugins are loaded and compiled beside what
// runs (Pipeline.Prepare), the new version is checked and tried against the old one on the same seeds, then it takes
// over at its boundary and is watched for a while. One change at a time.
//
// What runs is also what the run's folder says, so that a run that goes on after a kill runs exactly one of the two
// versions: the modules lie in the folder by their hash before anything begins; a line "begin" is on the disk before
// the change is made in memory; pipeline.toml is replaced right after, as a whole; then comes a line "committed".
//
// How a pipeline is changed is package pipeline's business, how a socket is spoken to core/control's, what a file of
// the run's folder looks like pipeline/runs'.
//
// Locks: job.committing is held while a change is made, so that commands.end finds it written down. underWay.mu and
// history.mu come after it, are held for moments only, and never both or while anything is called that blocks.
package session
