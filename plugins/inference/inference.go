package inference

import (
	"errors"
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// config is the component's table.
type config struct {
	Policy   string        `toml:"policy" doc:"Policy that it computes." range:"a [policy] table" default:"required"`
	MaxRows  int           `toml:"max_rows" doc:"Most rows that are computed together." range:"1 to 1,048,576" unit:"rows"`
	MinRows  int           `toml:"min_rows" doc:"Rows that are waited for, max_wait at most, where a call costs much and environments take unequal times." range:"1 to max_rows" unit:"rows"`
	MaxWait  time.Duration `toml:"max_wait" doc:"Longest wait of a request for further rows." range:"1us to 1m"`
	Versions int           `toml:"versions" doc:"Most versions that are held, for a policy with a pool." range:"1 to 1024" unit:"versions"`
}

// The default wait is Sample Factory's.
func defaults() config {
	return config{MaxRows: 1024, MinRows: 1, MaxWait: 25 * time.Millisecond, Versions: 8}
}

// Inference serves act requests with one policy.
type Inference struct {
	config    config
	h         *component.Host
	format    policy.WeightsFormat
	network   *policy.Network
	bound     map[*trajectory.Schema]*bound
	ages      []byte // of requests
	backend   policy.Backend
	drawn     bool       // an episode is played to its end with the version that it has begun with
	versions  []*version // held, the newest last; without drawn only that one
	now       *version   // the newest one; nil before the first
	actions   *bus.Signal
	flushSlot loop.Func

	flushing  bool   // a flush is posted
	yielded   bool   // it has yielded to the messages queued before it
	rested    func() // called after that flush; nil if not pausing
	pending   []hostabi.Message
	rows      int          // of pending requests, where few are waited for
	wait      *loop.Timer  // for more rows; nil if none is under way
	late      int          // waits in a row that were in vain
	views     policy.Views // of requests
	picked    policy.Picked
	own, some []uint32 // rows of a request that are picked
	batchRows *stat.Histogram
	gone      *stat.Counter // episodes whose version is held no more
}

var (
	_ component.Component = (*Inference)(nil)
	_ component.Pauser    = (*Inference)(nil)
)

// New returns an unconfigured inference component.
func New() component.Component { return &Inference{} }

// Manifest lists the ports.
func (inf *Inference) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{
			{Name: "actions", Payload: component.PayloadActions, OnLoan: true, Doc: "the row asked about has been written"},
		},
		Slots: []component.Port{
			{Name: "act", Payload: component.PayloadRequest, Doc: "a row of observations waits for actions"},
			{Name: "on_weights", Payload: component.PayloadWeights, Doc: "a new policy version"},
		},
	}
}

// Configure reads the component's table.
func (inf *Inference) Configure(decode func(into any) error) error {
	inf.config = defaults()
	if err := decode(&inf.config); err != nil {
		return err
	}
	if inf.config.Policy == "" {
		return &component.ConfigError{Key: "policy", Reason: "is missing", Help: "name one of the [policy] tables"}
	}
	if inf.config.MaxRows < 1 || inf.config.MaxRows > 1<<20 {
		return &component.ConfigError{Key: "max_rows",
			Reason: fmt.Sprintf("is %d, want 1 to %d", inf.config.MaxRows, 1<<20)}
	}
	if inf.config.MinRows < 1 || inf.config.MinRows > inf.config.MaxRows {
		return &component.ConfigError{Key: "min_rows",
			Reason: fmt.Sprintf("is %d, want 1 to max_rows, which is %d", inf.config.MinRows, inf.config.MaxRows)}
	}
	if inf.config.MaxWait < time.Microsecond || inf.config.MaxWait > time.Minute {
		return &component.ConfigError{Key: "max_wait", Reason: fmt.Sprintf("is %v, want 1us to 1m", inf.config.MaxWait)}
	}
	if inf.config.Versions < 1 || inf.config.Versions > maxVersions {
		return &component.ConfigError{Key: "versions",
			Reason: fmt.Sprintf("is %d, want 1 to %d", inf.config.Versions, maxVersions)}
	}
	return nil
}

// Flow returns how many versions are held; see component.Flowing.
func (inf *Inference) Flow() component.Flow { return component.Flow{Versions: inf.config.Versions} }

// Start prepares the policy. Requests wait until the first weights arrive.
func (inf *Inference) Start(h *component.Host) error {
	inf.h = h
	inf.actions = h.Signal("actions")
	h.Slot("act", inf.act)
	h.Slot("on_weights", inf.onWeights)
	inf.flushSlot = inf.flush
	inf.batchRows, inf.gone = h.Stats.Histogram("inference/batch_rows"), h.Stats.Counter("inference/versions_gone")
	definition, err := policy.Of(h, inf.config.Policy)
	if err != nil {
		return err
	}
	if h.Tables != nil {
		table := h.Tables().Policies[inf.config.Policy]
		inf.drawn = table.Drawn()
	}
	inf.backend = definition.Backend
	inf.format, inf.network, inf.bound = definition.Network.Weights(), &definition.Network, map[*trajectory.Schema]*bound{}
	return inf.addVersion()
}

// onWeights loads a policy version. Its block is claimed while the slot runs.
func (inf *Inference) onWeights(m *hostabi.Message) {
	if err := inf.load(m.Handle); err != nil {
		inf.h.Fail(fmt.Errorf("weights %v: %w", m.Handle, err))
		return
	}
	inf.schedule()
}

func (inf *Inference) load(h hostabi.Handle) error {
	from := inf.h.Trace.Now()
	lease, err := inf.h.Arenas.Lease(h)
	if err != nil {
		return err
	}
	defer lease.Release()
	w, err := inf.format.Read(lease.Bytes())
	if err != nil {
		return err
	}
	if err := inf.network.CheckFinite(w); err != nil {
		return &table.Error{Code: CodeNotFinite, Err: err,
			Reason: fmt.Sprintf("the learner published version %d of the policy with numbers that are not finite: %v", w.Version, err),
			Help:   "look at the loss and the rewards that the learner learned from before; a smaller learning rate or clipped gradients keep it finite"}
	}
	if err := inf.hold(w, lease.Bytes()); err != nil {
		return err
	}
	inf.h.Trace.Loaded(inf.h.Name, inf.config.Policy, w.Version, from)
	return nil
}

// CodeNotFinite is the code of published parameters that are not finite; rlhost explain has its page.
const CodeNotFinite = "R015"

// act queues a request.
func (inf *Inference) act(m *hostabi.Message) {
	inf.pending = append(inf.pending, *m)
	if inf.config.MinRows > 1 {
		inf.rows += inf.rowsAsked(m)
	}
	inf.schedule()
}

// rowsAsked returns the rows of a request, of all policies; 0 if it is wrong, which gather tells.
func (inf *Inference) rowsAsked(m *hostabi.Message) int {
	tr, err := trajectory.Borrowed(inf.h.Arenas, m.Handle)
	if err != nil {
		return 0
	}
	return tr.Schema.Rows()
}

// schedule posts a flush, once enough rows are asked about or the first of them has waited long enough.
func (inf *Inference) schedule() {
	switch {
	case inf.flushing || inf.now == nil || len(inf.pending) == 0:
	case inf.config.MinRows == 1 || inf.rows >= inf.config.MinRows:
		inf.late = 0
		inf.post()
	case inf.wait == nil:
		inf.wait = inf.h.Receiver.After(inf.config.MaxWait, inf.waited)
	}
}

// inVain is how many waits in a row without enough rows the log tells about.
const inVain = 100

// waited posts a flush of fewer rows than were waited for.
func (inf *Inference) waited() {
	if inf.late++; inf.late == inVain {
		inf.h.Log.Warn("every batch waits its longest time: so many rows are never asked about at once", "min_rows", inf.config.MinRows,
			"rows", inf.rows, "max_wait", inf.config.MaxWait, "help", "set min_rows to a third of the environments' agents, or leave it out")
	}
	inf.post()
}

// post posts a flush after the messages that the loop has already received.
func (inf *Inference) post() {
	inf.endWait()
	inf.flushing = true
	inf.h.Receiver.Post(inf.flushSlot, hostabi.Message{})
}

func (inf *Inference) endWait() {
	if inf.wait != nil {
		inf.wait.Stop()
		inf.wait = nil
	}
}

// flush serves everything that is pending, in batches of max_rows, and replies.
//
// In synchronous mode queued messages go first once more. One may be a dataset that is learned from when some rollouts have already
// begun their next blocks, because their previous ones were released early: their first rows then see the newest policy, like all
// others and like a run that continues from there.
func (inf *Inference) flush(*hostabi.Message) {
	if inf.h.Run.Synchronous && !inf.yielded {
		inf.yielded = true
		inf.h.Receiver.Post(inf.flushSlot, hostabi.Message{})
		return
	}
	inf.yielded, inf.flushing = false, false
	if err := inf.serve(); err != nil {
		inf.h.Fail(err)
		return
	}
	for i := range inf.pending {
		if err := inf.actions.Emit(inf.pending[i]); err != nil {
			inf.h.Fail(err)
			return
		}
	}
	inf.pending, inf.rows = inf.pending[:0], 0
	if rested := inf.rested; rested != nil {
		inf.rested = nil
		rested()
	}
}

// serve acts on all rows that are pending and makes their requests the replies: the same messages with the policy and the
// version that acted.
func (inf *Inference) serve() error {
	for i := range inf.pending {
		if err := inf.gather(&inf.pending[i]); err != nil {
			return err
		}
	}
	for _, v := range inf.versions {
		if err := inf.run(v); err != nil {
			return err
		}
	}
	inf.picked.Return()
	inf.views, inf.ages = inf.views[:0], inf.ages[:0]
	return nil
}

// Pause waits for the batch that is being gathered, if there is one. No further rows are waited for.
func (inf *Inference) Pause(rested func()) {
	if inf.wait != nil {
		inf.post()
	}
	if !inf.flushing {
		rested()
		return
	}
	inf.rested = rested
}

// Resume has nothing to do.
func (inf *Inference) Resume() { inf.rested = nil }

// Waiting returns the requests that arrived before the first weights.
func (inf *Inference) Waiting() []component.Waiting {
	var list []component.Waiting
	for i := range inf.pending {
		list = append(list, component.Waiting{Slot: "act", Message: inf.pending[i]})
	}
	inf.pending, inf.rows = nil, 0
	return list
}

// Stop releases the policy.
func (inf *Inference) Stop() error {
	inf.endWait()
	var errs []error
	for _, v := range inf.versions {
		errs = append(errs, v.actor.Close())
	}
	inf.versions, inf.now = nil, nil
	return errors.Join(errs...)
}
