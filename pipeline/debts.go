package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/diagnosis"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// CodeOverdue is the code of an answer that did not come within its wire's time.
const CodeOverdue = "E086"

// debts are the answers that are owed in a run, as far as they have been seen.
type debts struct {
	since map[question]time.Time
	told  map[question]bool // that they are overdue
}

// question is a request that waits for answers.
type question struct {
	of *instance
	component.Owed
}

// debt is an answer that somebody owes.
type debt struct {
	by    *member
	wire  *graph.Wire
	to    string
	since time.Time
	key   question
}

// look notes the present debts and returns them. untimed reports the instances for which time does not count.
func (d *debts) look(now time.Time, a *assembly, untimed func(m *member) bool) (list []debt) {
	var seen map[question]time.Time
	for i := range a.members {
		m := &a.members[i]
		if untimed(m) {
			continue
		}
		for _, o := range m.owed() {
			key := question{m.instance, o}
			since, known := d.since[key]
			if !known {
				since = now
			}
			by := a.owing(m, &o)
			if slices.ContainsFunc(by, func(x debt) bool { return untimed(x.by) }) {
				continue
			}
			if seen == nil {
				seen = map[question]time.Time{}
			}
			seen[key] = since
			for _, x := range by {
				x.since, x.key = since, key
				list = append(list, x)
			}
		}
	}
	for key := range d.told {
		if _, waits := seen[key]; !waits {
			delete(d.told, key)
		}
	}
	d.since = seen
	return list
}

// owing returns who may owe an answer.
func (a *assembly) owing(asks *member, o *component.Owed) (list []debt) {
	for i := range a.graph.Wires {
		w := &a.graph.Wires[i]
		if w.From != asks.of.Name || w.Signal != o.Signal || component.PayloadOf(w.Payload).AnsweredBy == "" {
			continue
		}
		for k := range a.members {
			m := &a.members[k]
			if m.of.Name == w.To && (!w.Paired || m.index == asks.index) && (o.Policies == "" || slices.Contains(strings.Fields(o.Policies), m.of.Policy)) {
				list = append(list, debt{by: m, wire: w, to: asks.name})
			}
		}
	}
	return list
}

// overdue returns debts that are older than their wires allow, each once.
func (d *debts) overdue(now time.Time, list []debt) (late []debt) {
	for _, x := range list {
		if x.wire.Answer == 0 || now.Sub(x.since) <= x.wire.Answer || d.told[x.key] {
			continue
		}
		if d.told == nil {
			d.told = map[question]bool{}
		}
		late = append(late, x)
	}
	for _, x := range late {
		d.told[x.key] = true
	}
	return late
}

// error describes the overdue answer.
func (x *debt) error() error {
	reason := fmt.Sprintf("owes %s an answer to %s for more than %v", x.to, component.Qualified(x.wire.From, x.wire.Signal), x.wire.Answer)
	if refused := x.by.process().Refused; refused != "" {
		reason += "; " + refused
	}
	return &table.Error{Code: CodeOverdue, Place: x.by.name, Reason: reason,
		Help: fmt.Sprintf("answer each request; where one may take longer, set answer on the wire %s, such as \"5m\", or \"0s\" for ever", x.wire)}
}

// demand interrupts instances that have owed an answer for too long: a process is started again, any other instance fails.
func (p *Pipeline) demand() {
	for _, x := range p.watch.takeOverdue() {
		err := x.error()
		p.running.log.Warn("an answer is overdue", "component", x.by.name, "error", err)
		if c, ok := x.by.component.(component.Owing); ok {
			c.Overdue(err)
			continue
		}
		x.by.host.Fail(err)
	}
}

// debtsOf describes them for status.
func debtsOf(list []debt, m *member, now time.Time) (told []diagnosis.Debt) {
	for _, x := range list {
		if x.by.instance == m.instance {
			told = append(told, diagnosis.Debt{To: x.to, Signal: component.Qualified(x.wire.From, x.wire.Signal), For: now.Sub(x.since)})
		}
	}
	return told
}

// untimed reports whether the time of an instance does not count: it is paused, replaced, or has no process now.
func (w *watch) untimed(m *member, replacing map[*instance]bool) bool {
	p := m.process()
	return w.pauses.has(m.instance) || replacing[m.instance] || p.State != "" && p.State != component.ProcessRunning
}

// takeOverdue returns the overdue debts that were not taken before.
func (w *watch) takeOverdue() []debt {
	w.guard.Lock()
	defer w.guard.Unlock()
	late := w.late
	w.late = nil
	return late
}

// tellStill logs once why a run has stalled, and when it continues. A run that is paused, or whose learner works on a long dataset, has
// not stalled. During a change, the cause is not known.
func (p *Pipeline) tellStill() {
	if len(p.changes.replacing()) > 0 {
		return
	}
	now := time.Now()
	cause := p.watch.snapshot(now).Standing()
	switch before := p.still.note(now, cause); {
	case cause != "" && before == "":
		p.running.log.Warn("the run stands still", "cause", cause, "help", "rlhost status tells what each component waits for")
	case cause == "" && before != "":
		p.running.log.Info("the run goes on")
	}
}
