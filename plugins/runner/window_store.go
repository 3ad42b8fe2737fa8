package runner

import (
	"cmp"
	"slices"
)

// episodesPerEnv bounds how far back a window reaches for the slowest environment.
const episodesPerEnv = 256

// newest keeps the last size episodes, and earlier ones back to the last episode of every environment.
type newest struct {
	size, limit int
	ring        []episode // length is a power of two
	first, next uint64    // positions of the oldest episode and after the newest one
	last        []uint64  // by environment: position of its last episode plus 1, 0 = none
	seen        int       // environments that have one
}

func newNewest(size int) *newest {
	return &newest{size: size, limit: size, ring: make([]episode, 128)}
}

func (s *newest) at(position uint64) *episode { return &s.ring[position&uint64(len(s.ring)-1)] }

func (s *newest) len() int { return int(s.next - s.first) }

func (s *newest) push(e episode, t *tally) {
	if s.len() == len(s.ring) {
		s.grow()
	}
	*s.at(s.next) = e
	t.add(&e, 1)
	s.next++
	if s.last[e.env] == 0 {
		s.seen++
	}
	s.last[e.env] = s.next
	s.advance(t)
}

// advance drops the oldest episodes that the window does not need.
func (s *newest) advance(t *tally) {
	for s.len() > s.size {
		oldest := s.at(s.first)
		if int(oldest.env) < len(s.last) && s.last[oldest.env] == s.first+1 {
			if s.len() <= s.limit {
				return
			}
			s.forget(int(oldest.env))
		}
		t.add(oldest, -1)
		s.first++
	}
}

func (s *newest) forget(env int) {
	if s.last[env] != 0 {
		s.last[env] = 0
		s.seen--
	}
}

func (s *newest) resize(envs int, t *tally) {
	for env := envs; env < len(s.last); env++ {
		s.forget(env)
	}
	s.last = resized(s.last, envs)
	s.limit = min(max(s.size, envs*episodesPerEnv), maxWindowEpisodes)
	s.advance(t)
}

func (s *newest) uncover(t *tally) {
	for env := range s.last {
		s.forget(env)
	}
	s.advance(t)
}

func (s *newest) covered() int { return s.seen }

func (s *newest) each(fn func(*episode)) {
	for p := s.first; p < s.next; p++ {
		fn(s.at(p))
	}
}

func (s *newest) grow() {
	ring := make([]episode, 2*len(s.ring))
	for p := s.first; p < s.next; p++ {
		ring[p&uint64(len(ring)-1)] = *s.at(p)
	}
	s.ring = ring
}

// perEnv keeps the last so many episodes of each environment.
type perEnv struct {
	share  int
	cells  []episode // share by environment
	pushed []uint64  // by environment: all episodes; the next one goes to cell pushed % share
	fresh  []uint64  // by environment: episodes since the last uncover
	ready  int       // environments with share fresh episodes
}

func newPerEnv(each int) *perEnv { return &perEnv{share: each} }

func (s *perEnv) push(e episode, t *tally) {
	cell := &s.cells[int(e.env)*s.share+int(s.pushed[e.env]%uint64(s.share))]
	if s.pushed[e.env] >= uint64(s.share) {
		t.add(cell, -1)
	}
	*cell = e
	t.add(cell, 1)
	s.pushed[e.env]++
	if s.fresh[e.env]++; s.fresh[e.env] == uint64(s.share) {
		s.ready++
	}
}

func (s *perEnv) resize(envs int, t *tally) {
	for env := envs; env < len(s.pushed); env++ {
		s.eachOf(env, func(e *episode) { t.add(e, -1) })
		if s.fresh[env] >= uint64(s.share) {
			s.ready--
		}
	}
	s.cells = resized(s.cells, envs*s.share)
	s.pushed, s.fresh = resized(s.pushed, envs), resized(s.fresh, envs)
}

func (s *perEnv) uncover(*tally) {
	clear(s.fresh)
	s.ready = 0
}

func (s *perEnv) covered() int { return s.ready }

func (s *perEnv) each(fn func(*episode)) {
	for env := range s.pushed {
		s.eachOf(env, fn)
	}
}

// eachOf calls fn with the episodes of one environment, the oldest first.
func (s *perEnv) eachOf(env int, fn func(*episode)) {
	each := uint64(s.share)
	for k := s.pushed[env] - min(s.pushed[env], each); k < s.pushed[env]; k++ {
		fn(&s.cells[uint64(env)*each+k%each])
	}
}

// resized returns s with n elements; new ones are zero.
func resized[T any](s []T, n int) []T {
	if n <= len(s) {
		clear(s[n:])
		return s[:n]
	}
	return append(s, make([]T, n-len(s))...)
}

// sorted returns the episodes in the window in the order in which they ended.
func (w *Window) sorted() []episode {
	episodes := make([]episode, 0, w.tally.n)
	w.kept.each(func(e *episode) { episodes = append(episodes, *e) })
	slices.SortFunc(episodes, func(a, b episode) int { return cmp.Compare(a.sequence, b.sequence) })
	return episodes
}
