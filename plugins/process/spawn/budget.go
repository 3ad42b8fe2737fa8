package spawn

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/component"
)

// Budget counts one component's restarts. The zero value has not been used.
type Budget struct {
	pause time.Duration
	spent component.Restarts
}

// Lived records how long the process that has just ended lived: after a healthy one pauses are short again.
func (b *Budget) Lived(p *Program, age time.Duration) {
	if age > p.Backoff.Healthy {
		b.pause = 0
	}
}

// Spend takes one restart out of the program's budget and returns how long to wait before it, or false if none is left.
func (b *Budget) Spend(p *Program) (pause time.Duration, ok bool) {
	if b.spent.Within(p.RestartWindow) >= p.Restarts {
		return 0, false
	}
	b.spent.Count()
	b.pause = min(max(2*b.pause, p.Backoff.First), p.Backoff.Longest)
	return b.pause, true
}

// Spent returns the error of a program whose budget is used up. end says how its process ended, newest why the newest
// attempt to start it failed; nil if it did not.
func (b *Budget) Spent(p *Program, end string, newest error) error {
	reason := fmt.Sprintf("%s, and `max_restarts` allows %d", end, max(p.Restarts, 0))
	if p.RestartWindow > 0 {
		reason += fmt.Sprintf(" within %v (`restart_window`)", p.RestartWindow)
	}
	if newest != nil {
		reason += fmt.Sprintf("; the newest attempt: %v", newest)
	}
	return &Error{Code: CodeDied, Program: p.Name, Err: ErrDied, Reason: reason}
}
