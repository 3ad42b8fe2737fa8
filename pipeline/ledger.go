package pipeline

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// ledger follows each trajectory from the instance that hands it over to its end, so that each of its env steps is counted once:
// as learned from or too old where that has been settled, else as dropped by who had it last. A reading is of one moment.
type ledger struct {
	of func() *assigned

	mu      sync.Mutex
	books   map[*arena.Arena]*book
	made    uint64            // env steps handed over
	settled fates             // env steps of trajectories that have ended, by their fate
	dropped map[string]uint64 // the dropped ones of those, by reason
	settles map[string]bool   // learners of plugins that have settled something
	trained map[uint16]uint64 // settled env steps that were learned from, by the learner's ID
	undone  map[uint16]uint64 // of them, lost when the learner went back to an earlier state
	lost    map[string]uint64 // the same by policy
}

// Reasons why env steps are dropped. Trajectories that a component took and never sent on are dropped for reasonComponent and its name.
const (
	reasonFault      = "fault"       // a fault of the environments, or of who ran them
	reasonSwap       = "swap"        // a change that cut a trajectory short
	reasonTooOld     = "policy_lag"  // the bound on it
	reasonCut        = "cut"         // the run ended within the dataset
	reasonWire       = "wire"        // a wire's overflow policy, or no wire
	reasonNotLearned = "not_learned" // the policy has no learner
	reasonHost       = "host"        // a host that was lost
	reasonComponent  = "component."
)

// fates are how many env steps have met each fate.
type fates [trajectory.Fates]uint64

func (f *fates) add(o fates) {
	for fate, n := range o {
		f[fate] += n
	}
}

// book has the trajectories of one arena, by their blocks.
type book struct {
	of      *arena.Arena
	entries []entry
}

// entry is one trajectory; block is 0 where none is open.
type entry struct {
	block   hostabi.Handle
	rows    []int  // valid rows that somebody learns, by the places of policies
	who     string // reason if it ends unsettled: who on its way to a learner had it last, or the wire that lost it
	aside   string // the same for a holder off that way
	foreign bool   // a plugin's learner has it, which may not settle its trajectories
	takers  []taker
	parts   []part // that datasets have
}

// part is a part of a trajectory that a dataset has: at those places of policies, its number among the place's, and its valid rows.
type part struct {
	place, number, rows int
	who                 string // reason if it ends unsettled: the learner that has it; else the trajectory's
	foreign             bool
}

// taker is an instance that has the trajectory, by its ID, which its successors have too.
type taker struct {
	id    uint16
	sent  uint64 // signals that it has sent it on since, by their places
	learn bool   // it learns from the rows at that place of policies
	place int
}

// by is who takes a trajectory.
type by struct {
	id      uint16
	name    string // of the component
	learns  bool   // from the rows of that policy
	policy  string
	foreign bool // a plugin's, which may not settle its trajectories
}

// errNotGiven is the error for a trajectory that an instance sends without having got it.
var errNotGiven = errors.New("a trajectory that the component has not been given")

func newLedger(of func() *assigned) *ledger {
	return &ledger{of: of, books: map[*arena.Arena]*book{}, dropped: map[string]uint64{}, settles: map[string]bool{},
		trained: map[uint16]uint64{}, undone: map[uint16]uint64{}, lost: map[string]uint64{}}
}

// find returns the entry of a block, which is that of an earlier use where the block is another's by now.
func (l *ledger) find(a *arena.Arena, h hostabi.Handle) *entry {
	b := l.books[a]
	if b == nil {
		b = &book{of: a, entries: make([]entry, a.Blocks())}
		l.books[a] = b
	}
	return &b.entries[h.Block()]
}

// send notes that an instance sends a trajectory on a signal, by its index in the manifest. If the instance is the first to send it,
// send returns the number of its env steps. The error is for a component that may not send it.
func (l *ledger) send(id uint16, signal int, a *arena.Arena, tr trajectory.Trajectory, h hostabi.Handle) (handed int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.find(a, h)
	if e.block != h {
		l.end(a, e)
		return l.open(id, signal, tr, h, e), nil
	}
	i := slices.IndexFunc(e.takers, func(t taker) bool { return t.id == id })
	switch bit := uint64(1) << (signal % 64); {
	case i < 0:
		return 0, fmt.Errorf("block %v: %w", h, errNotGiven)
	case e.takers[i].sent&bit != 0:
		return 0, fmt.Errorf("block %v: %w", h, component.ErrTwice)
	default:
		e.takers[i].sent |= bit
	}
	return 0, nil
}

// open begins the entry of a trajectory that is handed over.
func (l *ledger) open(id uint16, signal int, tr trajectory.Trajectory, h hostabi.Handle, e *entry) (handed int) {
	*e = entry{block: h, rows: tr.ValidRows(e.rows[:0]), takers: append(e.takers[:0], taker{id: id, sent: 1 << (signal % 64)}), parts: e.parts[:0]}
	learned := l.of().learned
	for place, n := range e.rows {
		handed += n
		if names := tr.Schema.Policies(); len(names) > 0 && len(learned) > 0 && !learned[""] && !learned[names[place]] {
			l.dropped[reasonNotLearned] += uint64(n)
			e.rows[place] = 0
		}
	}
	l.made += uint64(handed)
	return handed
}

// handed returns the env steps of all trajectories that were handed over.
func (l *ledger) handed() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made
}

// cut notes that a dataset has a part of a trajectory, with so many valid rows of the policy that its batcher is for.
func (l *ledger) cut(policy string, a *arena.Arena, m trajectory.Member, tr trajectory.Trajectory) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.find(a, m.Handle)
	if e.block != m.Handle {
		return
	}
	names := tr.Schema.Policies()
	for place := range e.rows {
		column := trajectory.Valid
		switch {
		case e.rows[place] == 0: // nobody learns them
			continue
		case len(names) > 0 && policy != "" && names[place] != policy:
			continue
		case len(names) > 0:
			column = trajectory.Valid.At(1 + place)
		}
		e.parts = append(e.parts, part{place: place, number: m.Part.Number, rows: tr.ValidIn(m.Part, column)})
	}
}

// take notes that an instance of a component has got a trajectory, or a part of it.
func (l *ledger) take(who by, a *arena.Arena, m trajectory.Member) {
	onWay, h := l.of().onWay[who.name], m.Handle
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.find(a, h)
	if e.block != h {
		return // the run is over, or the sender has made the handle up
	}
	switch {
	case onWay && !m.Part.Whole():
		e.takePart(&who, who.taker(a), m.Part.Number)
	case onWay:
		e.who, e.foreign = reasonComponent+who.name, who.foreign
	default:
		e.aside = reasonComponent + who.name
	}
	if slices.ContainsFunc(e.takers, func(t taker) bool { return t.id == who.id }) {
		return // it has come again, as after a restart
	}
	e.takers = append(e.takers, who.taker(a))
}

// taker returns an instance as the taker of a trajectory of an arena.
func (b *by) taker(a *arena.Arena) (t taker) {
	t.id = b.id
	if schema, ok := a.Schema().(*trajectory.Schema); ok && b.learns {
		t.place, t.learn = schema.PolicyPlace(b.policy)
	}
	return t
}

// takePart notes who has got the part of that number: of its policy, where it learns from one.
func (e *entry) takePart(who *by, t taker, number int) {
	for i := range e.parts {
		if p := &e.parts[i]; p.number == number && (!t.learn || p.place == t.place) {
			p.who, p.foreign = reasonComponent+who.name, who.foreign
		}
	}
}

// sentBy reports whether an instance has sent a trajectory on.
func (l *ledger) sentBy(id uint16, a *arena.Arena, h hostabi.Handle) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.find(a, h)
	return e.block == h && e.passedOn([]uint16{id})
}

// lose notes that a wire has lost a trajectory that an instance sent.
func (l *ledger) lose(a *arena.Arena, h hostabi.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.find(a, h); e.block == h && (e.who == "" || e.passedOn(l.of().ids[e.who])) {
		e.who = reasonWire
	}
}

// passedOn reports whether one of the instances with these IDs has sent the trajectory on.
func (e *entry) passedOn(ids []uint16) bool {
	return slices.ContainsFunc(e.takers, func(t taker) bool { return t.sent != 0 && slices.Contains(ids, t.id) })
}

// piecesAt yields the parts of the rows at a place of policies, and the rest of them, which is all of them where no dataset has a part.
func (e *entry) piecesAt(place int) iter.Seq[part] {
	return func(yield func(part) bool) {
		rest := part{place: place, rows: e.rows[place], who: e.who, foreign: e.foreign}
		for _, p := range e.parts {
			if p.place != place {
				continue
			}
			rest.rows, rest.number = rest.rows-p.rows, max(rest.number, p.number+1)
			if p.who == "" {
				p.who, p.foreign = e.who, e.foreign
			}
			if !yield(p) {
				return
			}
		}
		if rest.rows > 0 {
			yield(rest)
		}
	}
}

// fateOf returns the fate of a part; none yet if it is trajectory.Fates.
func (e *entry) fateOf(a *arena.Arena, p *part) (f trajectory.Fate) {
	for f < trajectory.Fates && trajectory.Settled(a, e.block, f)>>(p.number*len(e.rows)+p.place)&1 == 0 {
		f++
	}
	return f
}

// fates returns how many rows of a trajectory have met each fate, and how many none.
func (e *entry) fates(a *arena.Arena) (met fates, left uint64) {
	for place := range e.rows {
		for p := range e.piecesAt(place) {
			if f := e.fateOf(a, &p); f < trajectory.Fates {
				met[f] += uint64(p.rows)
			} else {
				left += uint64(p.rows)
			}
		}
	}
	return met, left
}

// learnedBy returns how many rows of a trajectory an instance has learned from.
func (e *entry) learnedBy(id uint16, a *arena.Arena) (n uint64) {
	for _, t := range e.takers {
		if !t.learn || t.id != id {
			continue
		}
		for p := range e.piecesAt(t.place) {
			if e.fateOf(a, &p) == trajectory.Trained {
				n += uint64(p.rows)
			}
		}
	}
	return n
}

// learned returns how many env steps a learner has learned from, without any whose learning was lost.
func (l *ledger) learned(id uint16) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.learnedNow(id)
}

// learnedNow is learned for callers that hold mu.
func (l *ledger) learnedNow(id uint16) uint64 {
	n := l.trained[id] - l.undone[id]
	for a, b := range l.books {
		for i := range b.entries {
			if e := &b.entries[i]; e.block != 0 {
				n += e.learnedBy(id, a)
			}
		}
	}
	return n
}

// again notes that a learner is given a trajectory, or a part of it, again: that it has learned from it before counts for nothing.
func (l *ledger) again(id uint16, a *arena.Arena, m trajectory.Member) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.find(a, m.Handle)
	if e.block != m.Handle {
		return
	}
	for _, t := range e.takers {
		if t.learn && t.id == id {
			_ = trajectory.Unsettle(a, m.Handle, m.Part.Number*len(e.rows)+t.place, trajectory.Trained) // of a damaged arena nothing holds
		}
	}
}

// goesBack notes that a learner has gone back to a state after so many env steps. Its later learning is lost.
func (l *ledger) goesBack(id uint16, name, policy string, to uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.learnedNow(id)
	if now <= to {
		return
	}
	l.undone[id] += now - to
	l.lost[policy] += now - to
	l.dropped[reasonComponent+name] += now - to
}

// lostOf returns how many env steps a policy has learned from whose learning was lost.
func (l *ledger) lostOf(policy string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost[policy]
}

// end closes the entry of a trajectory without holders.
func (l *ledger) end(a *arena.Arena, e *entry) {
	if e.block == 0 {
		return
	}
	for place := range e.rows {
		for p := range e.piecesAt(place) {
			if p.foreign && e.fateOf(a, &p) == trajectory.Trained {
				l.settles[p.who] = true
			}
		}
	}
	for place := range e.rows {
		for p := range e.piecesAt(place) {
			l.endPiece(a, e, &p)
		}
	}
	e.block = 0
}

// endPiece counts the rows of a part of a trajectory without holders.
func (l *ledger) endPiece(a *arena.Arena, e *entry, p *part) {
	n, f := uint64(p.rows), e.fateOf(a, p)
	if f == trajectory.Fates && p.foreign && !l.settles[p.who] {
		f = trajectory.Trained
	}
	for _, t := range e.takers {
		if t.learn && t.place == p.place && f == trajectory.Trained {
			l.trained[t.id] += n
		}
	}
	switch {
	case f < trajectory.Fates:
		l.settled[f] += n
	case p.who != "":
		l.dropped[p.who] += n
	case len(l.of().learned) == 0:
		l.dropped[reasonNotLearned] += n
	case e.aside != "":
		l.dropped[e.aside] += n
	default:
		l.dropped[reasonWire] += n
	}
}

// look ends the entries of one arena whose trajectories have no holder any more, and returns the fates of the others.
func (l *ledger) look(b *book) (met fates, underWay uint64) {
	for i := range b.entries {
		e := &b.entries[i]
		switch {
		case e.block == 0:
		case !b.of.Claimed(e.block): // who settled it had a claim, so its fates are final
			l.end(b.of, e)
		default:
			own, left := e.fates(b.of)
			met.add(own)
			underWay += left
		}
	}
	return met, underWay
}

// close closes the book of an arena that is removed: no process may mark its blocks afterwards, or claim any.
func (l *ledger) close(a *arena.Arena) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.books[a]; b != nil {
		for i := range b.entries {
			l.end(a, &b.entries[i])
		}
		delete(l.books, a)
	}
}

// reading has the counts of a ledger at one moment: made is the sum of the others.
type reading struct {
	made, underWay uint64
	settled        fates
	dropped        map[string]uint64
}

func (l *ledger) read() reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := reading{made: l.made}
	var now fates
	for _, b := range l.books {
		met, left := l.look(b)
		now.add(met)
		r.underWay += left
	}
	r.settled = l.settled
	r.settled.add(now)
	for _, n := range l.lost {
		r.settled[trajectory.Trained] -= n
	}
	r.dropped = maps.Clone(l.dropped)
	return r
}
