// Package session is a training as a library: it begins or resumes one, saves checkpoints, answers commands, and evaluates
// the result.
//
//	s, err := rlhost.Begin(ctx, rlhost.Options{File: "pipeline.toml"})
//	result, err := s.Run(ctx) // meanwhile s.Checkpoint and s.Stop
//	err = s.Close()
//
// It prints nothing: an observer gets events, a log gets warnings. Package pipeline runs the pipeline; graph.Parts has
// the parts it is made of. Commands come over the control socket of the run's folder during Run.
//
// All changes take one way: the next graph is checked, its plugins are loaded and compiled during the run
// (Pipeline.Prepare), the new version is checked and tried against the old one on the same seeds, then it takes over at
// its boundary and is watched for a while. One change at a time.
//
// The run's folder agrees with the running version, so that a run that is resumed after a kill runs exactly one of
// the two versions: the modules are in the folder by their hash before anything begins; a line "begin" is on the
// disk before the change is made in memory; pipeline.toml is replaced right after, as a whole; then comes a line
// "committed".
//
// Package pipeline changes a pipeline, core/control speaks the socket's protocol, pipeline/runs defines the files of
// the run's folder.
//
// Locks: job.committing is held while a change is made, so that commands.end finds it written down. underWay.mu and
// history.mu come after it, are held for moments only, never both, and never during a call that blocks.
package session
