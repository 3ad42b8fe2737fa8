// Package tape keeps the inputs of a run's environments in a ring of files, so that their episodes can be played again bit for bit.
//
//	r, err := tape.Create(dir, tape.Options{Limit: 1 << 30})
//	s := r.Stream(tape.Head{Name: "rollout", Envs: 8})
//	s.Write(tape.Actions, 0, actions, nil)
//
//	reel, err := tape.Open(dir)
//	for _, e := range reel.Episodes() { … }
//
// A stream belongs to one batch of environments, from its making to its end. Its records are in the order of the calls that the batch
// got. Position n of a stream is before its step n, counted from 0. A file begins with a line that identifies the format, and the number of
// the process that wrote it. Records follow: a kind, the number of the stream, a position, a length, and as many bytes. All numbers are
// little endian. Each file begins with the heads of all streams, so that it can be read where older ones are gone.
package tape
