package rollout

import (
	"slices"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// reports are the numbers that a split's environments report. Each environment gives a metric one number an episode,
// made from its reports in that episode.
type reports struct {
	stats   *stat.Registry
	n       int       // environments, or agents of all of them
	metrics []*metric // in the order of their first report
	byName  map[string]*metric
	figures []figure
	begins  []byte // 1 where an episode begins in the newest row, with a figure of that; nil where there is none
	ended   []told // of episodes that have ended in the block under way, in the order of their rows
	next    int    // the first of them that is not announced
}

func newReports(stats *stat.Registry, s *trajectory.Schema) reports {
	r := reports{stats: stats, n: s.Rows(), figures: newFigures(s)}
	if slices.ContainsFunc(r.figures, func(f figure) bool { return f.AtBegin }) {
		r.begins = make([]byte, r.n)
	}
	return r
}

// metric is one name under env/.
type metric struct {
	name    string
	to      *stat.Histogram
	running []tally // of the running episodes, by environment: where there are agents, by the first of each
	byAgent bool    // each agent has its own
}

// tally has the reports of one environment during its running episode.
type tally struct {
	Sum   float64
	Count uint64
	Value float64 // the last, the largest or the least, as the metric wants

	Gather hostabi.TensorFlags // how they become one
}

func (t *tally) add(v float64, gather hostabi.TensorFlags) {
	switch {
	case t.Count == 0 || gather&(hostabi.TensorMax|hostabi.TensorMin) == 0:
		t.Value = v
	case gather == hostabi.TensorMax:
		t.Value = max(t.Value, v)
	case gather == hostabi.TensorMin:
		t.Value = min(t.Value, v)
	}
	t.Sum += v
	t.Count++
	t.Gather = gather
}

// number returns the episode's number.
func (t *tally) number() float64 {
	switch t.Gather {
	case hostabi.TensorSum:
		return t.Sum
	case hostabi.TensorMean:
		return t.Sum / float64(t.Count)
	}
	return t.Value
}

// told is the number of one episode.
type told struct {
	to    *stat.Histogram
	value float64
	at    int // row and environment of its last step
}

// metric returns the metric of that name, made on first use. Names are few: the runtime bounds them.
func (r *reports) metric(name string) *metric {
	m := r.byName[name]
	if m == nil {
		m = &metric{name: name, to: r.stats.Histogram("env/" + name), running: make([]tally, r.n)}
		if r.byName == nil {
			r.byName = map[string]*metric{}
		}
		r.byName[name] = m
		r.metrics = append(r.metrics, m)
	}
	return m
}

// end ends the episodes that end in row t. Their numbers count when the episodes are announced.
func (r *reports) end(t int, ends func(at int) bool) {
	if len(r.metrics) == 0 {
		return
	}
	for env := range r.n {
		at := t*r.n + env
		if !ends(at) {
			continue
		}
		for _, m := range r.metrics {
			if one := &m.running[env]; one.Count > 0 {
				r.ended = append(r.ended, told{m.to, one.number(), at})
				m.running[env] = tally{}
			}
		}
	}
}

// figure is a number of the environments' infos, which becomes a number of an episode like a report.
type figure struct {
	trajectory.Figure
	to   *metric // nil before the first row
	last bool    // the row that ends the episode has the episode's number
}

func newFigures(s *trajectory.Schema) []figure {
	var list []figure
	for _, f := range s.Figures() {
		list = append(list, figure{Figure: f, last: !f.AtBegin && (f.AtEnd || f.Gather == 0)})
	}
	return list
}

// add takes a value of a running episode. The environment's value for the end of an episode is absent where a wrapper has ended it.
func (f *figure) add(env int, value float32) {
	if !f.AtEnd || !trajectory.IsAbsent(value) {
		f.to.running[env].add(float64(value), f.Gather)
	}
}

// gather takes the infos of row t of a block; ended has the row's kinds of ends.
func (r *reports) gather(tr trajectory.Trajectory, t int, ended trajectory.Ended) {
	if len(r.figures) == 0 {
		return
	}
	valid := tr.Row(trajectory.Valid, t).Data
	terminated, truncated := tr.Row(trajectory.Terminated, t).Data, tr.Row(trajectory.Truncated, t).Data
	for k := range r.figures {
		f := &r.figures[k]
		if f.last && ended == 0 {
			continue
		}
		if f.to == nil {
			f.to = r.metric(f.Name)
		}
		info := tr.Row(f.Column, t)
		values, at, stride := info.Float32(), f.Elem*info.StrideElem/4, info.StrideRow/4
		for env := range r.n {
			over := terminated[env]|truncated[env] != 0
			if valid[env] != 0 && (over || !f.last) && (!f.AtBegin || r.begins[env] != 0) {
				f.add(env, values[at+env*stride])
			}
		}
	}
}

// forget drops an environment's reports of an episode that is not announced.
func (r *reports) forget(env int) {
	for _, m := range r.metrics {
		m.running[env] = tally{}
	}
}

// count counts the episode whose last step is announced; episodes are announced in the order of their rows.
func (r *reports) count(at int) {
	for len(r.ended) > r.next && r.ended[r.next].at <= at {
		if m := r.ended[r.next]; m.at == at {
			m.to.Observe(m.value)
		}
		r.next++
	}
}

// drop forgets the episodes that have ended in the block under way.
func (r *reports) drop() { r.ended, r.next = r.ended[:0], 0 }

// save returns the reports of the running episodes; nil if there are none.
func (r *reports) save() map[string][]tally {
	var all map[string][]tally
	for _, m := range r.metrics {
		if all == nil {
			all = map[string][]tally{}
		}
		all[m.name] = append([]tally(nil), m.running...)
	}
	return all
}
