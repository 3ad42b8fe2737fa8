package spawn

import (
	"fmt"
	"time"
)

// restartWindow is the time that Program.Restarts are counted in.
const restartWindow = 10 * time.Minute

// Backoff says how long a process that has died is not started again.
type Backoff struct {
	First   time.Duration // before the first restart in a row; then twice as long each time
	Longest time.Duration
	Healthy time.Duration // a process that lived so long ends the row
}

// DefaultBackoff holds where a Program does not set its own.
func DefaultBackoff() Backoff {
	return Backoff{First: 100 * time.Millisecond, Longest: 5 * time.Second, Healthy: time.Minute}
}

// Restarts is the budget of one component's restarts. The zero value has not been used.
type Restarts struct {
	pause time.Duration
	dead  []time.Time // restarts within the window
}

// Lived tells how long the process lived that has just ended: after one that was healthy pauses are short again.
func (r *Restarts) Lived(p *Program, age time.Duration) {
	if age > p.Backoff.Healthy {
		r.pause = 0
	}
}

// Spend takes one restart out of the program's budget and returns how long to wait before it, or false if none is left.
func (r *Restarts) Spend(p *Program) (pause time.Duration, ok bool) {
	now := time.Now()
	for len(r.dead) > 0 && now.Sub(r.dead[0]) > restartWindow {
		r.dead = r.dead[1:]
	}
	if len(r.dead) >= p.Restarts {
		return 0, false
	}
	r.dead = append(r.dead, now)
	r.pause = min(max(2*r.pause, p.Backoff.First), p.Backoff.Longest)
	return r.pause, true
}

// Spent tells of a program whose budget is used up, after an end in words. newest is why the newest attempt to start it
// failed, if it did.
func (p *Program) Spent(end string, newest error) error {
	reason := fmt.Sprintf("%s, and `restarts` allows %d within %v", end, max(p.Restarts, 0), restartWindow)
	if newest != nil {
		reason += fmt.Sprintf("; the newest attempt: %v", newest)
	}
	return &Error{Code: CodeDied, Program: p.Name, Err: ErrDied, Reason: reason}
}
