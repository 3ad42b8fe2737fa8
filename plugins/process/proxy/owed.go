package proxy

import (
	"maps"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Owed lists the unanswered requests of the process; see component.Asking.
func (x *proxy) Owed(fn func(component.Owed)) {
	l := x.newestSession()
	if l == nil {
		return
	}
	l.mu.Lock()
	asks := maps.Clone(l.asks)
	l.mu.Unlock()
	for q, a := range asks {
		if !x.shared.onLoan(q.block) {
			continue // who asked does not wait any more
		}
		fn(component.Owed{Signal: x.shared.manifest.Signals[a.port].Name, Split: a.split, Mark: a.number, Policies: x.unanswered(q.block, &a)})
	}
}

// unanswered returns the policies that have not answered a request for actions; empty where one acts in all rows, and of other requests.
func (x *proxy) unanswered(block hostabi.Handle, a *ask) string {
	if x.shared.carry[a.port].Name != component.PayloadRequest {
		return ""
	}
	arena, err := x.shared.h.Arenas.Of(block)
	if err != nil {
		return ""
	}
	s, ok := arena.Schema().(*trajectory.Schema)
	if !ok {
		return ""
	}
	var names []string
	for place, name := range s.Policies() {
		if a.answered>>place&1 == 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
