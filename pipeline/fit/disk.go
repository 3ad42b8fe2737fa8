package fit

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/core/trace"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Rates say how fast a run writes. The zero Rates are unknown.
type Rates struct {
	EnvSteps, Rows, Episodes float64 // a second
	Row, Episode, Trace      float64 // bytes
	Checkpoint               float64 // bytes of one
}

// Disk is what the files of a run take after a day, or when its stop rule ends it before: metrics.jsonl, episodes.csv, a file of traces, a
// recording and the checkpoints that are kept. Where rates are unknown it is the most, as far as that is known before components run.
type Disk struct {
	Metrics, Episodes, Traces float64 // bytes
	Recording                 float64 // at most, as run.record says
	Checkpoint                float64 // bytes of one
	Checkpoints               float64 // how many are kept
	Seconds                   float64 // of the run
	Stopped                   bool    // by its rule
	Measured                  float64 // env steps a second; 0: these are the most
}

// What is taken for rates that are unknown: more than any run has made, and rows as long as they are with a component of each kind.
const (
	day         = 24 * 60 * 60
	mostRows    = 1e5 // a second
	mostEnds    = 1e7 // episodes a second
	rowBytes    = 1800
	partBytes   = 90 // that a row is longer by with each further component
	episodeSize = 40
	spanBytes   = 600 // of a trace, with a share of its head
	accounts    = 400 // bytes of an environment's or agent's row in the state of its component
)

// Disk forecasts the files of a run.
func (l *Loaded) Disk(r Rates) Disk {
	run := &l.graph.Run
	d := Disk{Seconds: day, Measured: r.EnvSteps}
	if limit := run.Stop.WallTime.Seconds(); limit > 0 && limit < day {
		d.Seconds, d.Stopped = limit, true
	}
	steps, traces := float64(run.Stop.EnvSteps), 1/trace.Period.Seconds()
	if r.EnvSteps > 0 {
		if made := r.EnvSteps * d.Seconds; steps == 0 || steps > made {
			steps = made
		} else {
			d.Seconds, d.Stopped = steps/r.EnvSteps, true
		}
		d.Metrics, d.Episodes = metrics.LogBytes(r.Rows, r.Row, d.Seconds), metrics.EpisodesBytes(r.Episodes, r.Episode, d.Seconds)
		traces = min(traces, r.Rows)
	} else {
		row := rowBytes + float64(len(l.parts))*partBytes
		d.Metrics, d.Episodes = metrics.LogBytes(mostRows, row, d.Seconds), metrics.EpisodesBytes(mostEnds, episodeSize, d.Seconds)
		if steps > 0 && len(l.graph.Policies) == 1 { // of several, one learns from a share of the steps that nobody knows
			d.Stopped = true
			rows, agents := l.dataset()
			datasets := steps*float64(agents)/float64(rows) + 1
			d.Metrics = min(d.Metrics, row*datasets)
			traces = min(traces, datasets/d.Seconds)
			d.Episodes = min(d.Episodes, metrics.EpisodesBytes(steps*float64(agents), episodeSize, 1))
		}
	}
	if l.tracesFile() {
		d.Traces = metrics.TracesBytes(traces, cmp.Or(r.Trace, l.trace()), d.Seconds)
	}
	d.Recording = float64(run.Record)
	d.Checkpoint, d.Checkpoints = l.checkpoint(r), l.kept(steps)
	return d
}

// tracesFile reports whether there is a file of traces in the run's folder.
func (l *Loaded) tracesFile() bool {
	to := l.graph.Run.Traces
	address, err := trace.IsAddress(to)
	return to != "" && !address && err == nil && !filepath.IsAbs(to)
}

// trace returns the bytes of one: a span for each block of the largest dataset, and one for each other component.
func (l *Loaded) trace() float64 {
	blocks, least := 0, 0
	for _, x := range l.parts {
		blocks = max(blocks, x.Flow.DatasetRows)
		if n := x.Flow.BlockRows; n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	spans := len(l.parts) + 1
	if least > 0 {
		spans += (blocks + least - 1) / least
	}
	return float64(spans * spanBytes)
}

// Check adds a warning where files take more than is free in a folder.
func (d Disk) Check(free int64, dir string, c *graph.Report) {
	if d.Bytes() > free {
		c.Add("W118", graph.Span{}, "make room, or name another disk by run.dir; fewer checkpoints (run.checkpoint.keep) and a rule of run.stop take less",
			"a run's files take %s, and %s has room for %s", d, dir, sizeText(free))
	}
}

// dataset returns the env steps of the smallest dataset, and the most agents of an environment.
func (l *Loaded) dataset() (rows, agents int) {
	agents = 1
	for _, x := range l.parts {
		if n := x.Flow.DatasetRows; n > 0 && (rows == 0 || n < rows) {
			rows = n
		}
		if x.plugin != nil {
			agents = max(agents, x.spec.Agents())
		}
	}
	return max(rows, 1), agents
}

// checkpoint returns the bytes of one: where it was not measured, weights and the two moments of the optimiser of each policy that is
// learned, and in synchronous mode the states of environments.
func (l *Loaded) checkpoint(r Rates) float64 {
	if r.Checkpoint > 0 {
		return r.Checkpoint
	}
	bytes := 0
	for _, x := range l.parts {
		if p, ok := x.policy.(component.Weighed); ok && x.publishes != "" {
			bytes += 3 * p.WeightBytes()
		}
		if l.graph.Synchronous && x.schema != nil {
			bytes += x.Count * x.Flow.Splits * int(l.state(x))
		}
	}
	return float64(bytes)
}

// state returns the bytes of the state of a split: its environments, and the row that is carried, in base64, with what is counted of each.
func (l *Loaded) state(x *part) int64 {
	carried := x.schema.ObservedBytes()*4/3 + x.schema.Rows()*accounts
	return int64(carried) + env.StateBytes(x.plugin, x.schema.Shape.Envs)
}

// kept returns how many checkpoints there are after so many env steps; 0 steps are unknown.
func (l *Loaded) kept(steps float64) float64 {
	c, n := &l.graph.Run.Checkpoint, 0.0
	for _, x := range l.parts {
		if x.publishes != "" && x.policy != nil {
			n++
		}
	}
	if n == 0 {
		return 0 // nothing is learned
	}
	if !c.Best {
		n = 0
	}
	if n += float64(c.Keep); c.KeepEveryEnvSteps > 0 {
		n += float64(int(steps) / c.KeepEveryEnvSteps)
	}
	return n
}

// Bytes adds up a forecast.
func (d Disk) Bytes() int64 {
	return int64(d.Metrics + d.Episodes + d.Traces + d.Recording + d.Checkpoint*d.Checkpoints)
}

// String tells a forecast in a line.
func (d Disk) String() string {
	after, most := "after a day", "at most "
	if d.Stopped {
		after = "when it stops"
	}
	rate := ""
	if d.Measured > 0 {
		most, rate = "", fmt.Sprintf("; at %.3g measured env steps/s", d.Measured)
	}
	parts := []string{"metrics.jsonl " + sizeText(int64(d.Metrics)), "episodes.csv " + sizeText(int64(d.Episodes))}
	if d.Traces > 0 {
		parts = append(parts, "traces "+sizeText(int64(d.Traces)))
	}
	if d.Recording > 0 {
		parts = append(parts, "recording at most "+sizeText(int64(d.Recording)))
	}
	if d.Checkpoints > 0 {
		parts = append(parts, fmt.Sprintf("%.0f checkpoints of %s", d.Checkpoints, sizeText(int64(d.Checkpoint))))
	}
	return fmt.Sprintf("%s%s on the disk %s (%s%s)", most, sizeText(d.Bytes()), after, strings.Join(parts, ", "), rate)
}
