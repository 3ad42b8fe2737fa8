// Package runs keeps the files of a training run: one folder a run, its description, its checkpoints.
//
//	r, err := runs.Create("runs", "cartpole")       // runs/cartpole/0001, numbered and locked
//	err = r.Update(func(i *runs.Info) { i.Seed = 1 })
//	err = r.Save(runs.Checkpoint{PolicyVersion: 12, Components: states})
//	c, err := r.Load("latest")
//	err = r.End("return")
//	err = r.Close()
//
// A folder holds
//
//	lock             held by the process that writes, with its process id
//	pipeline.toml    the resolved pipeline, as it runs after the last change
//	run.json         Info
//	events.jsonl     Change: changes during the run, by whom, and their outcomes
//	log.jsonl        the log, with log.1.jsonl before it
//	plugins/         modules that were swapped in, by their hash
//	metrics.jsonl    written by the runner component
//	episodes.csv     written by the runner component
//	checkpoints/     one folder per checkpoint, latest.json and best.json name two of them
//
// Every file of this package appears whole or not at all: it is written under another name, flushed to the disk
// and renamed. So a crash or a full disk at any byte leaves the previous file. Checkpoints are JSON, safetensors
// and plain bytes; reading one never runs anything.
//
// Package pipeline and the components decide when checkpoints are taken and what they contain.
package runs
