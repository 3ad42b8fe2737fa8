//go:build invariants

package arena

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/rlhost/rlhost/hostabi"
)

const invariants = true

// maxStack is how many callers of a claim are remembered.
const maxStack = 16

// ticket identifies a lease; 0 is a claim without a Lease, from Commit or Retain.
type ticket uint64

// claim is an open loan, lease or retain, and who made it.
type claim struct {
	ticket ticket
	kind   string
	stack  []uintptr
}

// tracker remembers the open claims of this process.
type tracker struct {
	mu      sync.Mutex
	tickets ticket                     // guarded by mu
	loans   map[hostabi.Handle]claim   // guarded by mu
	claims  map[hostabi.Handle][]claim // guarded by mu, oldest first
}

// callers returns the stack above the exported method that made the claim.
func callers() []uintptr {
	const skip = 4 // runtime.Callers, callers, the tracker's method, the arena's method
	stack := make([]uintptr, maxStack)
	return stack[:runtime.Callers(skip, stack)]
}

func (t *tracker) loaned(h hostabi.Handle) {
	c := claim{kind: "loan", stack: callers()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loans == nil {
		t.loans = map[hostabi.Handle]claim{}
	}
	t.loans[h] = c
}

// endLoan reports whether the loan was open; only one caller gets true.
func (t *tracker) endLoan(h hostabi.Handle) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, open := t.loans[h]
	delete(t.loans, h)
	return open
}

func (t *tracker) leased(h hostabi.Handle) ticket {
	c := claim{kind: "lease", stack: callers()}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tickets++
	c.ticket = t.tickets
	t.add(h, c)
	return c.ticket
}

func (t *tracker) retained(h hostabi.Handle) {
	c := claim{kind: "claim", stack: callers()}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(h, c)
}

func (t *tracker) add(h hostabi.Handle, c claim) {
	if t.claims == nil {
		t.claims = map[hostabi.Handle][]claim{}
	}
	t.claims[h] = append(t.claims[h], c)
}

// endLease reports whether that lease was open.
func (t *tracker) endLease(h hostabi.Handle, id ticket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.remove(h, slices.IndexFunc(t.claims[h], func(c claim) bool { return c.ticket == id }))
}

// endClaim ends a claim without a Lease, or the oldest lease if there is no other: it was released by its
// handle and may not be released again.
func (t *tracker) endClaim(h hostabi.Handle) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.claims[h], func(c claim) bool { return c.ticket == 0 })
	return t.remove(h, max(i, 0))
}

func (t *tracker) remove(h hostabi.Handle, i int) bool {
	open := t.claims[h]
	if i < 0 || i >= len(open) {
		return false
	}
	if len(open) == 1 {
		delete(t.claims, h)
		return true
	}
	t.claims[h] = slices.Delete(open, i, i+1)
	return true
}

// report lists every open claim with the stack that made it, in the order of handles.
func (t *tracker) report() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[hostabi.Handle][]claim{}
	for h, c := range t.loans {
		all[h] = append(all[h], c)
	}
	for h, list := range t.claims {
		all[h] = append(all[h], list...)
	}
	handles := make([]hostabi.Handle, 0, len(all))
	for h := range all {
		handles = append(handles, h)
	}
	slices.Sort(handles)
	var text strings.Builder
	for _, h := range handles {
		for _, c := range all[h] {
			c.write(&text, h)
		}
	}
	return text.String()
}

func (c claim) write(text *strings.Builder, h hostabi.Handle) {
	fmt.Fprintf(text, "\n%s of %v, taken by", c.kind, h)
	frames := runtime.CallersFrames(c.stack)
	for {
		frame, more := frames.Next()
		fmt.Fprintf(text, "\n\t%s\n\t\t%s:%d", frame.Function, frame.File, frame.Line)
		if !more {
			return
		}
	}
}
