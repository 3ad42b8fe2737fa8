package pipeline

import (
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
)

// payloadDataset is the payload of what a learner learns from.
const payloadDataset = "dataset"

// readings is how often steps are read until nothing has been made meanwhile.
const readings = 16

// uncounted are the env steps of learners that do not count what they learn, such as a component of a plugin that is not
// made with this program's learner: blocks that nobody holds any more, and nobody has dropped, were trained on.
type uncounted struct {
	mu     sync.Mutex
	of     *instance // the learner
	from   uint64    // what the counter said when it was first seen
	own    int64     // its steps
	before int64     // those of learners before it
}

func (u *uncounted) steps() uint64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return uint64(max(u.before+u.own, 0))
}

// note takes what is missing from a reading. It reports whether the learner is one that has counted nothing so far.
func (u *uncounted) note(of *instance, counter uint64, missing int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if of != u.of {
		u.before += u.own
		u.of, u.from, u.own = of, counter, 0
	}
	if counter != u.from {
		u.own = 0
		return false
	}
	u.own += missing
	return true
}

// stepsOfOthers is Steps while the learner does not count.
func (p *Pipeline) stepsOfOthers() (control.StepCounts, bool) {
	of := p.learner()
	if of == nil {
		return control.StepCounts{}, false
	}
	var s control.StepCounts
	for range readings {
		made := p.stats.Counter(stepsMade).Value()
		if s = p.readSteps(); p.stats.Counter(stepsMade).Value() == made {
			break
		}
	}
	m := missing(&s)
	if !p.uncounted.note(of, p.stats.Counter(stepsTrained).Value(), m) {
		return s, false
	}
	s.Trained += uint64(m)
	return s, true
}

// learner returns the instance of a plugin that datasets go to, nil where this program's own learner runs.
func (p *Pipeline) learner() *instance {
	for _, m := range p.now().members {
		if m.of.Plugin != "" && slices.ContainsFunc(m.of.Manifest.Slots, func(port component.Port) bool { return port.Payload == payloadDataset }) {
			return m.instance
		}
	}
	return nil
}
