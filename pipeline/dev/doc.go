// Package dev keeps a running training up to date with the sources of its plugins: it watches their folder, builds what has changed
// and hands the result to the run.
//
//	loop := dev.Loop{File: "pipeline.toml", Dial: dial, Say: func(line string) { fmt.Println(line) }}
//	err := loop.Run(ctx) // until ctx ends, or the run
//
// The run does the rest, as for every reload: checks, the boundary, the probation, the way back. Whatever goes wrong here is a line
// and no more. The package builds by the commands of the pipeline file alone, and only where the author has started it.
package dev
