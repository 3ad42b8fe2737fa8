package actor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// CodeActing is the code of a program that cannot act: it raises an error, answers nonsense or does not answer. rlhost explain has its page.
const CodeActing = "R016"

// actor acts by a process. A process that dies is replaced: everything that an answer depends on is on this side.
type actor struct {
	backend *Backend
	network policy.Network
	sizes   policy.Sizes
	layout  native.PolicyScratch
	scratch *shm.Segment
	process *process // nil once it has ended

	loaded   bool
	version  uint64
	restarts component.Restarts

	batch []part // rows that one message asks about
	rows  int
}

// part is a request of the batch, whose first row is that of the scratch area.
type part struct {
	request *policy.Request
	index   int // in Act
	at      int
}

func newActor(b *Backend, n *policy.Network, maxRows int) *actor {
	a := &actor{backend: b, network: *n, sizes: n.Sizes()}
	a.layout = layoutOf(&a.network, &a.sizes, maxRows)
	return a
}

// adopt makes a process the actor's.
func (a *actor) adopt(p *process) error {
	a.process = p
	if a.scratch == nil {
		var err error
		if a.scratch, err = shm.Create("rlhost: policy", a.layout.Bytes); err != nil {
			return err
		}
	}
	return p.share(a.scratch, &a.layout)
}

// Load is policy.Actor's.
func (a *actor) Load(w policy.Weights) error {
	if len(w.Params) != a.network.ParamCount() {
		return fmt.Errorf("weights of %d parameters, the network has %d", len(w.Params), a.network.ParamCount())
	}
	copy(a.floats(a.layout.ParamsAt, len(w.Params)), w.Params)
	a.loaded, a.version = true, w.Version
	return a.again(a.load)
}

// load has the process take the version in the scratch area.
func (a *actor) load() error {
	return a.exchange(hostabi.Message{Slot: hostabi.LinkPolicyLoad, Inline: [2]uint64{a.version}}, "load a version")
}

// Act is policy.Actor's.
func (a *actor) Act(requests []policy.Request) error {
	if !a.loaded {
		return policy.ErrNoWeights
	}
	for i := range requests {
		r := &requests[i]
		if err := a.sizes.Check(r); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		if a.rows > 0 && (kindOf(r) != kindOf(a.batch[0].request) || a.rows+r.Len() > a.layout.Rows) {
			if err := a.flush(); err != nil {
				return err
			}
		}
		if r.Len() > a.layout.Rows {
			return fmt.Errorf("request %d: %d rows, the most are %d", i, r.Len(), a.layout.Rows)
		}
		a.batch = append(a.batch, part{r, i, a.rows})
		a.rows += r.Len()
	}
	return a.flush()
}

// kindOf is the kind of the message that asks about a request's rows.
func kindOf(r *policy.Request) (kind uint16) {
	if r.Greedy {
		kind |= hostabi.LinkPolicyGreedy
	}
	if r.Action == nil {
		kind |= hostabi.LinkPolicyValue
	}
	return kind
}

// flush asks about the batch.
func (a *actor) flush() error {
	defer func() { a.batch, a.rows = a.batch[:0], 0 }()
	if a.rows == 0 {
		return nil
	}
	kind := kindOf(a.batch[0].request)
	err := a.again(func() error {
		for i := range a.batch {
			if err := a.fill(&a.batch[i]); err != nil {
				return err
			}
		}
		return a.exchange(hostabi.Message{Slot: hostabi.LinkPolicyAct, Kind: kind, T: uint32(a.rows)}, "act")
	})
	if err != nil {
		return err
	}
	for i := range a.batch {
		if err := a.take(&a.batch[i]); err != nil {
			return err
		}
	}
	return nil
}

// again does something that needs the process, in another process where that dies, as often as the program may be started again.
func (a *actor) again(do func() error) error {
	for {
		if a.process == nil {
			return a.died(errors.New("its process has ended"))
		}
		err := do()
		if !errors.Is(err, spawn.ErrDied) {
			return err
		}
		if err := a.replace(); err != nil {
			return err
		}
		if err := a.load(); err != nil && !errors.Is(err, spawn.ErrDied) {
			return err
		}
	}
}

// died is the error of an actor without a process.
func (a *actor) died(why error) error {
	return &spawn.Error{Code: spawn.CodeDied, Program: a.backend.program.Name, Err: spawn.ErrDied, Reason: fmt.Sprintf("%v, and it may not be started again", why),
		Help: "correct what ends it; max_restarts of its table says how often it may be"}
}

// replace starts another process in the place of one that has died.
func (a *actor) replace() error {
	p := &a.backend.program
	ended := a.process.PID()
	why := errors.Join(fmt.Errorf("process %d %s", ended, a.process.End()), a.process.close())
	a.process = nil
	if a.restarts.Within(p.RestartWindow) >= max(p.Restarts, 0) {
		return a.died(why)
	}
	a.restarts.Count()
	a.backend.runtime.Log().Warn("the program of a policy has ended and is started again", "policy", a.backend.wanted.Name, "why", why)
	next, err := a.backend.take(context.Background())
	if err != nil {
		return err
	}
	return a.adopt(next)
}

// exchange sends a message and reads the answer.
func (a *actor) exchange(m hostabi.Message, doing string) error {
	limit := a.backend.program.Stall
	if limit <= 0 {
		limit = forever
	}
	reply, err := a.process.ask(m, limit)
	switch {
	case errors.Is(err, spawn.ErrDied):
		return err
	case errors.Is(err, errLate):
		return a.failure(fmt.Sprintf("did not %s within %v%s", doing, limit, a.process.LastWords()), "make it faster, or raise `stall` of its table")
	case err != nil:
		return a.failure(fmt.Sprintf("did not %s: %v", doing, err), "")
	case reply.Kind == 0:
		return nil
	}
	n := min(reply.Inline[0], uint64(a.layout.Text))
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(a.scratch.Bytes()[a.layout.TextAt:][:n]), "?")), " ")
	failed := a.failure(fmt.Sprintf("could not %s: %s", doing, text), "the log has the traceback")
	if row := int(min(reply.Inline[1], uint64(a.rows))) - 1; row >= 0 {
		return a.rowError(row, failed)
	}
	return failed
}

// forever is the limit of a program without one.
const forever = 1000 * time.Hour

// failure is the error of a program that does not answer as it should.
func (a *actor) failure(reason, help string) error {
	return &table.Error{Code: CodeActing, Reason: fmt.Sprintf("policy %q: plugin %q %s", a.backend.wanted.Name, a.backend.program.Name, reason), Help: help}
}

// rowError names the row that an error is about.
func (a *actor) rowError(row int, err error) error {
	for i := len(a.batch) - 1; i >= 0; i-- {
		if p := &a.batch[i]; row >= p.at {
			return &policy.RowError{Request: p.index, Row: row - p.at, Err: err}
		}
	}
	return err
}

// Close is policy.Actor's.
func (a *actor) Close() error {
	var errs []error
	if a.process != nil {
		errs = append(errs, a.process.close())
		a.process = nil
	}
	if a.scratch != nil {
		errs = append(errs, a.scratch.Close())
		a.scratch = nil
	}
	return errors.Join(errs...)
}
