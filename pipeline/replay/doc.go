// Package replay plays recorded episodes again, bit for bit: the environments get the actions that they got.
//
//	reel, err := tape.Open(filepath.Join(run.Dir, runs.RecordingFolder))
//	e, err := replay.Find(reel, replay.Key{Env: 3, Number: 17})
//	x, err := replay.Open(reel, e, load)
//	for x.Step() == nil && !x.Over { … }
//
// All environments of the batch are played, from the nearest state before the episode that was kept, because environments of a batch may
// share their random numbers. An episode that continued in a new version of its environment is played in both.
package replay
