package main

import (
	"errors"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// runsFlag says where runs lie that are given by name.
type runsFlag struct {
	Runs string `name:"runs" placeholder:"DIR" help:"Folder to look for runs in; default run.dir of ./pipeline.toml, else runs."`
}

// find opens a run.
func (f *runsFlag) find(which string) (*runs.Run, error) {
	run, err := runs.Open(f.dir(), which)
	if errors.Is(err, runs.ErrNotFound) {
		return nil, fail(exitUsage, err)
	}
	return run, err
}

func (f *runsFlag) dir() string {
	if f.Runs != "" {
		return f.Runs
	}
	if src, err := files.Read(defaultPipeline, graph.MaxBytes); err == nil {
		if dir, problems := graph.RunDir(defaultPipeline, src); problems.Err() == nil {
			return dir
		}
	}
	return "runs"
}
