package trace

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Stage is a station on the way of a dataset.
type Stage string

// Stages, in their order.
const (
	Rollout   Stage = "rollout"   // environments step into a block, from its begin to its commit
	Batcher   Stage = "batcher"   // blocks wait, from the first one's commit until there are enough
	Learner   Stage = "learner"   // the learner makes a version of the dataset, from its message to the publication
	Inference Stage = "inference" // a component that acts loads the version
)

// Span is what one component did for a dataset. Fields that its stage does not have are 0.
type Span struct {
	Stage     Stage
	Component string
	From, To  time.Time
	Split     int    // of a rollout
	Blocks    int    // of a dataset
	Policy    string // that learned, or acts
	Version   uint64 // of that policy, which was made or loaded
}

// Way is the way of one dataset: its spans in the order in which they ended.
type Way []Span

// Limits of a Tracer.
const (
	Period    = time.Second // from one dataset that is followed to the next one
	maxBlocks = 4096        // that are in no dataset yet; of further ones the oldest are forgotten
	maxWays   = 64          // under way; when there are as many they are lost, and forgotten
)

// Tracer follows one dataset in each Period. A nil Tracer follows none, and its methods cost a comparison. Any goroutine.
type Tracer struct {
	told   func(Way)
	loaded func(Span) // of a tracer of another host
	now    func() time.Time

	mu        sync.Mutex
	next      time.Time                // when the next dataset is followed
	blocks    map[hostabi.Handle]*Span // committed
	commits   []hostabi.Handle         // of blocks: a ring
	oldest    int                      // place in commits
	datasets  map[hostabi.Handle]Way   // that no learner has learned from
	published map[string]Way           // by policy: the newest version that was made of a followed dataset
}

// New returns a tracer that calls told with each way that has ended, one call at a time, which must not call it back.
func New(told func(Way)) *Tracer {
	return &Tracer{told: told, now: time.Now, blocks: map[hostabi.Handle]*Span{}, datasets: map[hostabi.Handle]Way{}, published: map[string]Way{}}
}

// NewFar returns the tracer of a host that has none of a run's datasets: it notes how long blocks take, for Took, and calls loaded with each
// version that is loaded there, one call at a time, which must not call it back.
func NewFar(loaded func(Span)) *Tracer {
	t := New(func(Way) {})
	t.loaded = loaded
	return t
}

// Now returns the time, for the begin of a span; zero without a tracer.
func (t *Tracer) Now() time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.now()
}

// Wrote notes that a component has committed a block, which it began at from.
func (t *Tracer) Wrote(component string, split int, block hostabi.Handle, from time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks[block] = &Span{Stage: Rollout, Component: component, From: from, To: t.now(), Split: split}
	if len(t.commits) < maxBlocks {
		t.commits = append(t.commits, block)
		return
	}
	delete(t.blocks, t.commits[t.oldest])
	t.commits[t.oldest] = block
	t.oldest = (t.oldest + 1) % maxBlocks
}

// Took returns how long a block took that is on its way to another host, and forgets it; 0 where that is not known.
func (t *Tracer) Took(block hostabi.Handle) time.Duration {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.blocks[block]
	if s == nil {
		return 0
	}
	delete(t.blocks, block)
	return s.To.Sub(s.From)
}

// Batched notes that a component has made a dataset of blocks.
func (t *Tracer) Batched(component string, dataset hostabi.Handle, members []trajectory.Member) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	by, way := Span{Stage: Batcher, Component: component, From: now, To: now, Blocks: len(members)}, Way{}
	for i := range members {
		again := i > 0 && members[i].Handle == members[i-1].Handle // another part of it
		if block := t.blocks[members[i].Handle]; block != nil && !again {
			way = append(way, *block)
			if block.To.Before(by.From) {
				by.From = block.To
			}
		}
	}
	if now.Before(t.next) {
		return
	}
	if len(t.datasets) == maxWays {
		clear(t.datasets)
	}
	t.next = now.Add(Period)
	t.datasets[dataset] = append(way, by)
}

// Learned notes that a component has made a version of its policy of a dataset, which it began at from.
func (t *Tracer) Learned(component string, dataset hostabi.Handle, policy string, version uint64, from time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if before := t.published[policy]; before != nil { // nobody loads it any more
		delete(t.published, policy)
		t.told(before)
	}
	way := t.datasets[dataset]
	if way == nil {
		return
	}
	delete(t.datasets, dataset)
	t.published[policy] = append(way, Span{Stage: Learner, Component: component, From: from, To: t.now(), Policy: policy, Version: version})
}

// Loaded notes that a component has loaded a version to act with it, which it began at from.
func (t *Tracer) Loaded(component, policy string, version uint64, from time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded != nil {
		t.loaded(Span{Stage: Inference, Component: component, From: from, To: t.now(), Policy: policy, Version: version})
		return
	}
	for _, s := range t.published[policy] {
		if s.Stage == Learner && s.Version == version {
			t.published[policy] = append(t.published[policy], Span{Stage: Inference, Component: component, From: from, To: t.now(), Policy: policy, Version: version})
			return
		}
	}
}

// Close tells the ways whose versions were published. The others have not ended.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, policy := range slices.Sorted(maps.Keys(t.published)) {
		t.told(t.published[policy])
	}
	clear(t.published)
}
