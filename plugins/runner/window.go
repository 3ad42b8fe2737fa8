package runner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"
)

// Bounds of a window's memory.
const (
	maxWindowEnvs     = 1 << 20
	maxWindowEpisodes = 1 << 20
	maxSavedEpisodes  = 2 * maxWindowEpisodes // a share of each environment, rounded up
)

// resumEvery is after how many episodes the sum of returns is recomputed.
const resumEvery = 1024

// Window holds the episodes whose mean return represents the policy: about the last size of them.
//
// The very last size episodes will not do where there are many environments, because the first to end are the short ones. With
// 256 environments and episodes of 194 steps on average, the first hundred to end have lasted 38; when all first episodes are
// over, the last hundred have lasted 277; and where an early end is good, a new policy shows its successes first, also in the
// middle of a run. So the window takes more, until every environment has its part in it:
//
//   - Up to size/2 environments: the last size episodes, and as many more as it takes to reach back to the last
//     episode of every environment. Where episodes are about equally long, that is none.
//   - Beyond: the last size/environments episodes of each, rounded up.
//
// It is full, and its mean valid, when there are size episodes and every environment has its part.
//
// Use NewWindow. A Window belongs to one goroutine.
type Window struct {
	size     int
	envs     int // of the run; 0 while unknown
	acting   int // environments that have episodes in the window; 0 = all
	episodes uint64
	kept     store
	tally    tally // of the kept episodes
}

// episode is one episode of the window.
type episode struct {
	sequence    uint64 // counts from 0
	ret         float32
	length, env uint32
}

// store chooses which episodes stay. It reports additions and removals to the tally.
type store interface {
	push(e episode, t *tally)
	// resize sets the number of environments; higher indexes need no part any more.
	resize(envs int, t *tally)
	// uncover makes every environment count as one without a part in the window.
	uncover(t *tally)
	// covered returns how many environments have their part.
	covered() int
	// each calls fn with every episode, in an order that depends only on the pushes since the oldest of them.
	each(fn func(*episode))
}

// tally adds up episodes.
type tally struct {
	n       int
	sum     float64 // of the finite returns
	odd     int     // returns that are not finite
	lengths uint64
}

func (t *tally) add(e *episode, sign int) {
	t.n += sign
	t.lengths += uint64(sign) * uint64(e.length)
	if v := float64(e.ret); finite(v) {
		t.sum += float64(sign) * v
	} else {
		t.odd += sign
	}
}

// NewWindow returns an empty window of that size, 1 or more.
func NewWindow(size int) *Window {
	size = min(max(size, 1), maxWindowEpisodes)
	return &Window{size: size, kept: newNewest(size)}
}

// part returns how many episodes of each environment a window keeps, 0 if it does not count by environment.
func part(size, envs int) int {
	if envs <= size/2 {
		return 0
	}
	return (size + envs - 1) / envs
}

// SetEnvs sets the number of environments; their indexes are below n.
func (w *Window) SetEnvs(n int) {
	n = min(max(n, 0), maxWindowEnvs)
	w.count(n, w.acting)
	w.kept.resize(n, &w.tally)
}

// SetActing says that only n of the environments have episodes in the window, whichever; 0 = all.
func (w *Window) SetActing(n int) { w.count(w.envs, max(n, 0)) }

// count sets the numbers of environments.
func (w *Window) count(envs, acting int) {
	before := part(w.size, w.parts())
	w.envs, w.acting = envs, acting
	if after := part(w.size, w.parts()); before != after {
		w.rebuild(after)
	}
}

// parts returns how many environments must have their part in the window.
func (w *Window) parts() int {
	if w.acting > 0 {
		return min(w.acting, w.envs)
	}
	return w.envs
}

// rebuild moves the episodes to a store of the other kind.
func (w *Window) rebuild(each int) {
	episodes := w.sorted()
	w.tally = tally{}
	if each > 0 {
		w.kept = newPerEnv(each)
	} else {
		w.kept = newNewest(w.size)
	}
	w.kept.resize(w.envs, &w.tally)
	for _, e := range episodes {
		if int(e.env) < w.envs {
			w.kept.push(e, &w.tally)
		}
	}
}

// Push adds an episode that has ended. It reports false, and does nothing, for an environment with an index that
// no run has.
func (w *Window) Push(e trajectory.Episode) bool {
	if e.Env >= maxWindowEnvs {
		return false
	}
	if int(e.Env) >= w.envs {
		w.SetEnvs(int(e.Env) + 1)
	}
	w.kept.push(episode{w.episodes, e.Return, e.Length, e.Env}, &w.tally)
	w.episodes++
	if w.episodes%resumEvery == 0 {
		w.resum()
	}
	return true
}

// Pass counts an episode that has ended without taking it into the window.
func (w *Window) Pass() { w.episodes++ }

// Clear forgets the episodes in the window. How many have ended in all stays.
func (w *Window) Clear() {
	empty := NewWindow(w.size)
	empty.acting = w.acting
	empty.SetEnvs(w.envs)
	empty.episodes = w.episodes
	*w = *empty
}

// resum removes rounding errors from the sum, for example after one enormous return.
func (w *Window) resum() {
	w.tally = tally{}
	w.kept.each(func(e *episode) { w.tally.add(e, 1) })
}

// Uncover makes the window count as full only when every environment has its part in it again: they have all started
// again, and the first to end are the fast ones. The episodes stay.
func (w *Window) Uncover() { w.kept.uncover(&w.tally) }

// Full reports whether the window's mean is valid.
func (w *Window) Full() bool {
	return w.tally.n >= w.size && w.envs > 0 && w.kept.covered() >= w.parts()
}

// Len returns how many episodes are in the window.
func (w *Window) Len() int { return w.tally.n }

// Size returns how many episodes the window has at least when it is full.
func (w *Window) Size() int { return w.size }

// Coverage returns how many environments have their part in the window, and how many must.
func (w *Window) Coverage() (covered, envs int) { return w.kept.covered(), w.parts() }

// Episodes returns how many episodes have ended in all.
func (w *Window) Episodes() uint64 { return w.episodes }

// Mean returns the mean return; NaN of no episodes, or if one of them is not finite.
func (w *Window) Mean() float64 {
	if w.tally.n == 0 || w.tally.odd > 0 {
		return math.NaN()
	}
	return w.tally.sum / float64(w.tally.n)
}

// Std returns the standard deviation of the returns, over n; NaN where Mean is.
func (w *Window) Std() float64 {
	mean, sum := w.Mean(), 0.0
	w.kept.each(func(e *episode) {
		d := float64(e.ret) - mean
		sum += d * d
	})
	return math.Sqrt(sum / float64(w.tally.n))
}

// MeanLength returns the mean length in env steps; NaN of no episodes.
func (w *Window) MeanLength() float64 { return float64(w.tally.lengths) / float64(w.tally.n) }

func finite(v float64) bool { return v-v == 0 }

// WindowState is the part of a window in JSON; Append appends the other part.
type WindowState struct {
	Envs     int     `json:"envs"`
	Episodes uint64  `json:"episodes"` // ended in all
	Sum      float64 `json:"sum"`      // with its rounding errors, so that the mean continues bit for bit
}

// State returns the small part of the window's state.
func (w *Window) State() WindowState {
	return WindowState{Envs: w.envs, Episodes: w.episodes, Sum: w.tally.sum}
}

// An episode in a saved window: return f32, length u32, env u32.
const savedEpisodeBytes = 12

// Append appends the window's episodes to dst.
func (w *Window) Append(dst []byte) []byte {
	for _, e := range w.sorted() {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(e.ret))
		dst = binary.LittleEndian.AppendUint32(dst, e.length)
		dst = binary.LittleEndian.AppendUint32(dst, e.env)
	}
	return dst
}

// ErrWindow is wrapped for an invalid saved window.
var ErrWindow = errors.New("saved window is damaged")

// Restore replaces the content by the results of State and Append. The size stays.
func (w *Window) Restore(state WindowState, saved []byte) error {
	n := uint64(len(saved) / savedEpisodeBytes)
	if len(saved)%savedEpisodeBytes != 0 || n > state.Episodes || n > maxSavedEpisodes || !finite(state.Sum) ||
		state.Envs < 0 || state.Envs > maxWindowEnvs || state.Episodes > math.MaxInt64 {
		return fmt.Errorf("%w: %d bytes with %+v", ErrWindow, len(saved), state)
	}
	restored := NewWindow(w.size)
	restored.acting = w.acting
	restored.SetEnvs(max(state.Envs, w.envs))
	for k := range n {
		le, b := binary.LittleEndian, saved[k*savedEpisodeBytes:]
		e := episode{state.Episodes - n + k, math.Float32frombits(le.Uint32(b)), le.Uint32(b[4:]), le.Uint32(b[8:])}
		if e.env >= maxWindowEnvs {
			return fmt.Errorf("%w: environment %d of %d", ErrWindow, e.env, restored.envs)
		}
		if int(e.env) >= restored.envs { // of an instance that was added, or has gone, just before
			restored.SetEnvs(int(e.env) + 1)
		}
		restored.kept.push(e, &restored.tally)
	}
	restored.episodes = state.Episodes
	if uint64(restored.tally.n) == n {
		restored.tally.sum = state.Sum
	}
	*w = *restored
	return nil
}
