package rollout

import (
	"strings"
	"sync/atomic"

	"github.com/rlhost/rlhost/core/component"
)

// owed says what a split waits for, for other goroutines: the kind, the policies that have not answered, a bit each, and how
// often it has changed. The loop writes it.
type owed struct {
	word    atomic.Uint64
	changes uint64
}

// Places in the word.
const (
	owedPolicies = 2
	owedChanges  = owedPolicies + 32
)

func (o *owed) set(w awaits, policies uint64) {
	o.changes++
	o.word.Store(uint64(w) | policies<<owedPolicies | o.changes<<owedChanges)
}

// Owed returns the unanswered requests of the splits; see component.Asking.
func (c *Rollout) Owed(fn func(component.Owed)) {
	signals := [...]string{awaitsParams: signalResets, awaitsRewards: signalRewards, awaitsActions: "obs_ready"}
	for i, o := range c.owed {
		word := o.word.Load()
		w := awaits(word & (1<<owedPolicies - 1))
		if w == awaitsNothing {
			continue
		}
		var names []string
		for place := range c.policies.count() {
			if w == awaitsActions && c.policies != nil && word>>(owedPolicies+place)&1 != 0 {
				names = append(names, c.policies.names[place])
			}
		}
		fn(component.Owed{Signal: signals[w], Split: i, Mark: word >> owedChanges, Policies: strings.Join(names, " ")})
	}
}
