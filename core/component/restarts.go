package component

import "time"

// Restarts counts the restarts of one instance. The zero value has counted none.
type Restarts struct {
	all    int         // with a saved state's
	recent []time.Time // that this process has counted, within the longest window asked for
}

// Count counts a restart.
func (r *Restarts) Count() {
	r.all++
	r.recent = append(r.recent, time.Now())
}

// All returns how many there have been.
func (r *Restarts) All() int { return r.all }

// Within returns how many there have been in the last window, or in all if that is 0. It forgets older ones: ask with one window only.
func (r *Restarts) Within(window time.Duration) int {
	if window <= 0 {
		return r.all
	}
	for len(r.recent) > 0 && time.Since(r.recent[0]) > window {
		r.recent = r.recent[1:]
	}
	return len(r.recent)
}

// Restore continues from a saved count. Its restarts count where there is no window.
func (r *Restarts) Restore(all int) { r.all, r.recent = all, nil }
