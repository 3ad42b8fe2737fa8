package dash

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/pipeline/curves"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// How often a run is looked at, however many look, and how long it may take to answer.
const (
	freshFor   = 400 * time.Millisecond
	statusTime = 2 * time.Second
)

// Bounds on what is shown of files of strangers.
const (
	shownRecords  = 100
	shownEpisodes = 8
	shownChanges  = 100
	historyBytes  = 8 << 20
	shownPipeline = graph.MaxBytes
)

// Files of a run's folder that pages read by themselves.
const (
	logFile      = "log.jsonl"
	eventsFile   = "events.jsonl"
	episodesFile = "episodes.csv"
)

// run is one run of a folder, as it was when it was last looked at.
type run struct {
	key, dir string
	began    time.Time    // under finder.mu
	looked   atomic.Int64 // when, as Unix nanoseconds; 0 while nothing is kept

	mu     sync.Mutex
	log    *curves.Log
	wanted map[string]bool // metrics besides the usual ones
	client *control.Client
	now    look
	at     time.Time
	stamps [5]stamp
}

// look is what a page shows of a run. It is replaced and never changed.
type look struct {
	ID, Dir     string
	Info        runs.Info
	State       string // running, starting, killed, or why it ended
	Live        bool
	Status      *control.StatusReply // nil unless Live
	Problem     string               // why something is not shown
	Records     []record             // newest last
	Best, Worst []episode
	Episodes    int // that Best and Worst are of
	Changes     []runs.Entry
	Checkpoints []runs.Saved
	Pipeline    string
	Lines       int // of metrics
	Unreadable  int
	Names       []string
	Evaluations []evaluation // newest first
	Videos      []film       // the same
}

// episode is a line of episodes.csv.
type episode struct{ EnvStep, Env, Return, Length, Policy string }

// evaluation is one evaluation of a policy.
type evaluation struct {
	Policy                   string
	EnvSteps, Return, Length float64
	Std                      float64
}

func newRun(key, dir string) *run { return &run{key: key, dir: dir, wanted: map[string]bool{}} }

// forget closes what is open and drops what was read.
func (r *run) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log, r.at, r.stamps, r.now = nil, time.Time{}, [5]stamp{}, look{}
	r.hangUp()
	r.looked.Store(0)
}

func (r *run) hangUp() {
	if r.client != nil {
		_ = r.client.Close() // nothing is under way
		r.client = nil
	}
}

// look returns the state of the run, at most 0.4 s old.
func (r *run) look(ctx context.Context) look {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refreshed(ctx)
}

// refreshed is look for a caller that holds mu.
func (r *run) refreshed(ctx context.Context) look {
	r.looked.Store(time.Now().UnixNano())
	if time.Since(r.at) < freshFor {
		return r.now
	}
	next := r.now
	next.Problem = ""
	opened, err := runs.Open("", r.dir)
	if err != nil {
		next.Problem = "its folder cannot be read: " + err.Error()
		next.Live, next.Status = false, nil
		r.now, r.at = next, time.Now()
		return next
	}
	next.ID, next.Dir, next.Info = opened.ID(), opened.Dir, opened.Info()
	r.ask(ctx, opened, &next)
	r.readMetrics(&next)
	r.readFiles(opened, &next)
	r.now, r.at = next, time.Now()
	return next
}

// ask asks a live job for its status.
func (r *run) ask(ctx context.Context, opened *runs.Run, next *look) {
	next.Status, next.Live = nil, false
	pid, err := opened.Holder()
	switch i := &next.Info; {
	case err != nil:
		next.State, next.Problem = "unknown", err.Error()
	case pid == 0 && i.State == runs.Ended:
		next.State = "ended (" + i.Reason + ")"
	case pid == 0:
		next.State = "killed"
	case i.Starting != nil:
		next.State = i.Starting.String()
	case i.Socket == "":
		next.State = "begins"
	default:
		next.State, next.Live = runs.Running, true
		if next.Status, err = r.status(ctx, i.Socket); err != nil {
			next.Live, next.Problem = false, "it does not answer: "+err.Error()
			return
		}
		next.State = string(next.Status.State)
	}
	if !next.Live {
		r.hangUp()
	}
}

// status asks over the connection that is kept, once more over a new one where that has ended.
func (r *run) status(ctx context.Context, socket string) (*control.StatusReply, error) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), statusTime)
	defer done()
	for again := r.client != nil; ; again = false {
		if r.client == nil {
			client, err := control.Dial(ctx, socket)
			if err != nil {
				return nil, err
			}
			r.client = client
		}
		var s control.StatusReply
		err := r.client.Do(ctx, control.VerbStatus, control.StatusRequest{}, &s, nil)
		if err == nil {
			return &s, nil
		}
		r.hangUp()
		if !again {
			return nil, err
		}
	}
}

// wants reports whether a metric is kept: the ones of pictures and tables, of all policies, and what somebody has asked for.
func (r *run) wants(name string) bool {
	m, _, ok := metrics.Find(name)
	return ok && usual[m.Name] || r.wanted[name]
}

// readMetrics reads the new lines of the log of metrics.
func (r *run) readMetrics(next *look) {
	if r.log == nil {
		r.log = curves.NewLog(r.dir, r.wants)
	}
	grown, err := r.log.Read()
	if err != nil {
		next.Problem = "its metrics cannot be read: " + err.Error()
	}
	if grown {
		next.Lines, next.Unreadable, next.Names = r.log.Lines(), r.log.Unreadable(), r.log.Names()
		next.Evaluations = r.evaluations(next.Names)
	}
}

// want keeps one more metric, whose name is in the log.
func (r *run) want(name string) {
	if r.wanted[name] || r.wants(name) || !slices.Contains(r.now.Names, name) || len(r.wanted) >= maxWanted {
		return
	}
	r.wanted[name] = true
	r.log.Want(r.wants)
	_, _ = r.log.Read() // as look has just done
}

// maxWanted bounds the metrics that are kept because somebody asked for them.
const maxWanted = 32

// evaluations lists the newest evaluations, of all policies.
func (r *run) evaluations(names []string) (list []evaluation) {
	for _, name := range names {
		prefix, ok := strings.CutSuffix(name, evalReturn)
		if !ok {
			continue
		}
		returns, lengths, spread := r.log.Along(name, prefix+evalStep), r.log.Along(prefix+evalLength, prefix+evalStep), r.log.Along(prefix+evalStd, prefix+evalStep)
		for i := range returns.X {
			e := evaluation{Policy: strings.TrimSuffix(prefix, "/"), EnvSteps: returns.X[i], Return: returns.Y[i], Length: math.NaN(), Std: math.NaN()}
			if i < len(lengths.X) && lengths.X[i] == e.EnvSteps {
				e.Length = lengths.Y[i]
			}
			if i < len(spread.X) && spread.X[i] == e.EnvSteps {
				e.Std = spread.Y[i]
			}
			list = append(list, e)
		}
	}
	slices.SortStableFunc(list, func(a, b evaluation) int { return cmp.Compare(b.EnvSteps, a.EnvSteps) })
	return list[:min(len(list), shownChanges)]
}

// readFiles reads the other files of the folder, as far as they have changed.
func (r *run) readFiles(opened *runs.Run, next *look) {
	at := func(name string) string { return filepath.Join(r.dir, name) }
	note := func(name string, err error) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			next.Problem = name + " cannot be read: " + err.Error()
		}
	}
	if r.stamps[0].changed(at(logFile)) {
		lines, _, err := tail(at(logFile), tailBytes/8)
		note(logFile, err)
		next.Records = nil
		for _, line := range lines[max(len(lines)-shownRecords, 0):] {
			next.Records = append(next.Records, recordOf(line))
		}
	}
	if r.stamps[1].changed(at(episodesFile)) {
		lines, _, err := tail(at(episodesFile), tailBytes/4)
		note(episodesFile, err)
		next.Best, next.Worst, next.Episodes = ranked(lines)
	}
	if r.stamps[2].changed(at(eventsFile)) {
		var err error
		if next.Changes = nil; r.stamps[2].size > historyBytes {
			err = fmt.Errorf("it has %d bytes; rlhost history shows it", r.stamps[2].size)
		} else if next.Changes, err = opened.History(); len(next.Changes) > shownChanges {
			next.Changes = next.Changes[len(next.Changes)-shownChanges:]
		}
		note(eventsFile, err)
	}
	if r.stamps[3].changed(at("checkpoints")) {
		next.Checkpoints = opened.Checkpoints()
	}
	if r.stamps[4].changed(at(runs.VideoFolder)) {
		next.Videos = filmsIn(at(runs.VideoFolder))
	}
	src, err := files.Read(at(runs.PipelineFile), shownPipeline)
	note(runs.PipelineFile, err)
	next.Pipeline = printable(string(src))
}

// ranked returns the best and the worst of the newest episodes: the newest first where they are equal.
func ranked(lines [][]byte) (best, worst []episode, of int) {
	type valued struct {
		value float64
		at    int // place among the newest
		line  []byte
	}
	var all []valued
	for _, line := range slices.Backward(lines) {
		cells := bytes.SplitN(line, []byte(","), 5)
		if len(cells) < 4 {
			continue
		}
		value, err := strconv.ParseFloat(string(cells[2]), 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			continue // the head, or a line of somebody else
		}
		all = append(all, valued{value, len(all), line})
	}
	by := func(sign float64) (first []episode) {
		slices.SortFunc(all, func(a, b valued) int { return cmp.Or(cmp.Compare(sign*a.value, sign*b.value), a.at-b.at) })
		for _, e := range all[:min(len(all), shownEpisodes)] {
			first = append(first, episodeOf(e.line, e.value))
		}
		return first
	}
	return by(-1), by(1), len(all)
}

// episodeOf is an episode of a line that has four cells or more.
func episodeOf(line []byte, value float64) episode {
	cells := strings.Split(string(line), ",")
	e := episode{EnvStep: cut(cells[0], 20), Env: cut(cells[1], 20), Return: figure(value), Length: cut(cells[3], 20)}
	if len(cells) > 6 {
		e.Policy = cut(cells[6], 40)
	}
	return e
}

// described returns what run.json says, and the state, without reading metrics.
func (r *run) described() (runs.Info, string) {
	opened, err := runs.Open("", r.dir)
	if err != nil {
		return runs.Info{}, "unreadable"
	}
	info := opened.Info()
	if info.State == runs.Ended {
		return info, "ended (" + cut(info.Reason, 40) + ")"
	}
	if pid, err := opened.Holder(); err != nil || pid == 0 {
		return info, "killed"
	}
	return info, runs.Running
}

// figures returns the newest number of each metric that is kept.
func (r *run) figures(ctx context.Context) Figures {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.refreshed(ctx)
	f := Figures{Run: now.ID, Policy: now.Info.Policy, Values: map[string]float64{}}
	for _, name := range now.Names {
		if v, ok := r.log.Last(name); ok {
			f.Values[name] = v
		}
	}
	return f
}
