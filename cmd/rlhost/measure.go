package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/curves"
	"github.com/rlhost/rlhost/pipeline/fit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/runner"
)

// measuredFor is how long a pipeline is run to forecast its files.
const measuredFor = 2 * time.Second

// tracesFile has the traces that are measured, wherever they go otherwise.
const tracesFile = "traces.jsonl"

// disk forecasts the files of a pipeline, in a line, and warns where there is no room for them.
func (c *validateCommand) disk(p *program, file string, g *graph.Graph, parts *graph.Parts, forecast *pipeline.Forecast) (string, graph.Problems, error) {
	var rates fit.Rates
	if c.Measure {
		var err error
		if rates, err = p.measured(file, g, parts); err != nil {
			return "", nil, p.printProblems(err)
		}
	}
	d := forecast.Disk(rates)
	large := forecast.TooLarge(d, runs.Free(g.Run.Dir))
	p.problems(large)
	return "  " + d.String() + "\n", large, nil
}

// measured runs a pipeline for a moment and returns how fast it writes its files.
func (p *program) measured(file string, g *graph.Graph, parts *graph.Parts) (r fit.Rates, err error) {
	all, err := os.MkdirTemp("", "rlhost-measure-")
	if err != nil {
		return r, err
	}
	defer func() { err = p.also(err, os.RemoveAll(all)) }()
	brief, err := graph.Parse(file, []byte(g.Resolved()), graph.ParseOptions{Sets: briefly(g, all), Parts: parts, Expanded: true})
	if err != nil {
		return r, err
	}
	s, err := session.Begin(context.Background(), session.Options{Parts: parts, Graph: brief, Log: p.logger(), WithoutLearner: !session.Learns(brief)})
	if err != nil {
		return r, session.BuildError(err)
	}
	result, err := s.Run(context.Background())
	if err = p.also(err, s.Close()); err != nil {
		return r, err
	}
	dir := s.Folder().Dir
	took := result.Took.Seconds()
	if result.EnvSteps == 0 || took == 0 {
		return r, fail(exitFailed, fmt.Errorf("%s: --measure: no env step was counted in %s: measure it by a longer run", file, measuredFor))
	}
	r.EnvSteps = float64(result.EnvSteps) / took
	if r.Rows, r.Row, err = lines(filepath.Join(dir, curves.MetricsFile)); err != nil {
		return r, err
	}
	if r.Episodes, r.Episode, err = lines(filepath.Join(dir, runner.EpisodesFile)); err != nil {
		return r, err
	}
	r.Rows, r.Episodes = r.Rows/took, r.Episodes/took
	if _, r.Trace, err = lines(filepath.Join(dir, tracesFile)); err != nil {
		return r, err
	}
	r.Checkpoint = float64(runs.Bytes(filepath.Join(dir, "checkpoints")))
	return r, nil
}

// briefly are overrides with which a pipeline runs for a moment in a folder, and saves and evaluates as little as there can be.
func briefly(g *graph.Graph, dir string) []string {
	sets := []string{
		"run.dir=" + dir, fmt.Sprintf("run.stop.wall_time=%s", measuredFor), "run.checkpoint.every=0s", "run.evaluation.episodes=1",
		"run.evaluation.every_env_steps=0", "run.evaluation.video_every_env_steps=0", "run.evaluation.wall_time=100ms", "run.traces=" + tracesFile, "run.record=0",
	}
	for i := range g.Components {
		if x := &g.Components[i]; x.Kind == "runner" {
			sets = append(sets, fmt.Sprintf(`component.%s.log=["jsonl"]`, x.Name), fmt.Sprintf(`component.%s.listen=""`, x.Name))
		}
	}
	for i := range g.Policies {
		if of := &g.Policies[i]; of.From != "" {
			if path, err := g.Stored(of.From); err == nil {
				sets = append(sets, fmt.Sprintf("policy.%s.from=%s", of.Name, path))
			}
		}
	}
	return sets
}

// lines returns how many lines a file has, and the bytes of one; none of a file that is not there.
func lines(path string) (count, each float64, err error) {
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return 0, 0, nil
	}
	n := bytes.Count(content, []byte("\n"))
	return float64(n), float64(len(content)) / float64(max(n, 1)), err
}
