package rollout

import "github.com/rlhost/rlhost/core/stat"

// reports is what the environments of a split report of themselves. Each gives one number an episode to a metric: the mean
// of what it has reported in it.
type reports struct {
	metrics []*metric // in the order of their first report
	byName  map[string]*metric
	ended   []mean // of episodes that have ended in the block under way, in the order of their rows
	next    int    // the first of them that is not told
}

// metric is one name under env/.
type metric struct {
	name    string
	to      *stat.Histogram
	running []tally // of the running episodes, by environment
}

// tally is what one environment has reported during its running episode.
type tally struct {
	Sum   float64
	Count uint64
}

// mean is of one episode.
type mean struct {
	to    *stat.Histogram
	value float64
	at    int // row and environment of its last step
}

// report takes a number of an environment that the batch steps. Any goroutine that the batch is called on.
func (b *batch) report(env int, name string, value float64) {
	if s := b.reportsTo.Load(); s != nil {
		s.report(b, env, name, value)
	}
}

// report counts a number with the episode that it belongs to. Where the runtime does not know the environment (-1) it counts
// by itself, unless another batch makes some of the rows: then nobody can tell whether it is about one that counts.
func (s *split) report(b *batch, env int, name string, value float64) {
	if s.sides != nil && (env < 0 || s.sides.owner[env] != b) {
		return
	}
	m := s.metric(name)
	if env < 0 {
		if !b.onTrial {
			m.to.Observe(value)
		}
		return
	}
	m.running[env].Sum += value
	m.running[env].Count++
}

// metric returns the metric of that name, made on first use. Names are few: the runtime bounds them.
func (s *split) metric(name string) *metric {
	r := &s.reports
	m := r.byName[name]
	if m == nil {
		m = &metric{name: name, to: s.c.h.Stats.Histogram("env/" + name), running: make([]tally, s.n)}
		if r.byName == nil {
			r.byName = map[string]*metric{}
		}
		r.byName[name] = m
		r.metrics = append(r.metrics, m)
	}
	return m
}

// endReports ends the episodes that end in row t. Their means count when the episodes are told.
func (s *split) endReports() {
	r := &s.reports
	if len(r.metrics) == 0 {
		return
	}
	for env := range s.n {
		at := s.t*s.n + env
		if !s.ends(at) {
			continue
		}
		for _, m := range r.metrics {
			if one := m.running[env]; one.Count > 0 {
				r.ended = append(r.ended, mean{m.to, one.Sum / float64(one.Count), at})
				m.running[env] = tally{}
			}
		}
	}
}

// forget forgets what an environment has reported during an episode that is not told.
func (r *reports) forget(env int) {
	for _, m := range r.metrics {
		m.running[env] = tally{}
	}
}

// count counts the episode whose last step is told; they are told in the order of their rows.
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

// save returns what the running episodes have reported; nil if that is nothing.
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
