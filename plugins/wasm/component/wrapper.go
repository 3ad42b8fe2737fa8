package component

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
)

// Wrapper is a module of a component that shapes rewards, or else writes actions or observations, asked about each env step by itself: a
// request's block is one row of all environments of a batch. Its methods may be called concurrently.
type Wrapper struct {
	asked  component
	slot   int
	signal int
	writes trajectory.Column
}

// Wrapper loads a module and asks it for its manifest. Keys of Source that are for components in a pipeline are not used. The error
// is a *table.Error, or joins errors of the keys of args, unless the runtime is closed.
func (l *Modules) Wrapper(s Source, args map[string]any) (*Wrapper, error) {
	m, err := l.load(s)
	if err != nil {
		for _, e := range table.All(err) {
			e.Help = strings.Replace(e.Help, "component's grants", "wrapper's grants", 1)
		}
		return nil, err
	}
	w := &Wrapper{asked: component{module: m, source: s}}
	decode := func(into any) error { *into.(*map[string]any) = args; return nil }
	if err := w.asked.Configure(decode); err != nil {
		return nil, err
	}
	return w, w.check()
}

// check finds the ports of the requests, and refuses components that cannot be wrappers.
func (w *Wrapper) check() error {
	m := w.asked.Manifest()
	slot, signal, request, found := m.Wraps()
	w.slot, w.signal = slot, signal
	if found {
		w.writes, _ = trajectory.ParseColumn(core.PayloadOf(request).Grantable[0])
	}
	var pairs []string
	for _, request := range core.WrapperRequests {
		pairs = append(pairs, request+" with a signal of "+core.PayloadOf(request).AnsweredBy)
	}
	refuse := func(reason, help string) error {
		return &table.Error{Code: CodeManifest, Place: w.asked.source.Use, Reason: reason, Help: help}
	}
	switch {
	case !found:
		return refuse("is no wrapper: it has no slot of "+strings.Join(pairs, ", nor one of "), "docs/how-to/write-a-wrapper.md has one")
	case len(w.asked.manifest.Asks) > 0:
		return refuse("is no wrapper: it asks other components "+w.asked.manifest.Asks[0].Name, "a wrapper has no key asks: give it what it needs in columns, or in its table")
	case w.asked.manifest.Flags&hostabi.ComponentStateless == 0:
		return refuse("is no wrapper: it has a state of its own", "keep what belongs to an environment in the columns wrapper_state, wrapper_state/1, …, and save nothing")
	}
	return nil
}

// Hash returns the SHA-256 of the module.
func (w *Wrapper) Hash() string { return w.asked.module.File.Hash }

// DataDigest identifies the folder that the module may read: empty without.
func (w *Wrapper) DataDigest() string { return w.asked.module.File.DataDigest() }

// Writes returns the column that the module writes: trajectory.ShapedReward after each step, trajectory.Action before it, or
// trajectory.Obs.
func (w *Wrapper) Writes() trajectory.Column { return w.writes }

// Columns returns the columns that the module looks at, in the order of Shape.Columns.
func (w *Wrapper) Columns() []hostabi.ManifestColumn {
	var list []hostabi.ManifestColumn
	for _, c := range w.asked.manifest.Columns {
		if c.Slot == w.slot {
			list = append(list, c)
		}
	}
	return list
}

// Shape describes the columns of a request. In memory element (t, env, agent, i) is followed by the next i, then by the next
// agent, the next environment, and the next t.
type Shape struct {
	Envs, Agents int
	Columns      []ShapeOf // as Wrapper.Columns
}

// ShapeOf is the shape of a column; without rows it is an optional column that is absent.
type ShapeOf struct {
	DType       hostabi.DType
	Rows, Elems int
	Write       bool
}

// WrapperOptions say which instance to make.
type WrapperOptions struct {
	Name   string // for messages
	Seed   uint64
	Shape  Shape
	Log    *slog.Logger                     // of the guest, or nil
	Metric func(name string, value float64) // takes its reports, or is nil
}

// New makes an instance of the module and calls rl_start.
func (w *Wrapper) New(o WrapperOptions) (*WrapperInstance, error) {
	x := &WrapperInstance{wrapper: w, pieces: make([]piece, len(o.Shape.Columns)), metric: o.Metric}
	run, err := newInstance(w.asked.module, instanceOptions{name: o.Name, seed: o.Seed, services: alone{x}, log: o.Log})
	if err != nil {
		return nil, err
	}
	x.run = run
	if err := x.begin(o.Name, o.Seed, &o.Shape); err != nil {
		return nil, errors.Join(err, run.Close())
	}
	return x, nil
}

// WrapperInstance is one running copy of a wrapper's module. It is driven by one goroutine at a time.
type WrapperInstance struct {
	wrapper  *Wrapper
	run      *instance
	message  uint32
	pieces   []piece // of the columns
	saved    *savedInstance
	handling bool
	answered bool
	broken   error // why it cannot be called any more
	metric   func(name string, value float64)
	metrics  []string // by their numbers
}

// piece is memory of the guest's.
type piece struct{ at, n uint32 }

// begin has the guest give memory for its calls' arguments, lays them out, and saves the state that a fault returns to.
func (x *WrapperInstance) begin(name string, seed uint64, s *Shape) error {
	asked := component{source: x.wrapper.asked.source, lines: x.wrapper.asked.lines}
	if err := asked.ask(x.run); err != nil {
		return err
	}
	m := &asked.manifest
	var err error
	if x.message, err = x.run.Allocate(uint32(m.MessageBytes), 64); err != nil {
		return err
	}
	bindings, err := x.run.Allocate(uint32(max(1, len(s.Columns)*m.BindingBytes)), 64)
	if err != nil {
		return err
	}
	for i := range s.Columns {
		if err := x.layOut(i, s, bindings+uint32(i*m.BindingBytes), uint32(m.BindingBytes)); err != nil {
			return err
		}
	}
	if err := introduce(x.run, hostabi.Identity{Count: 1, Seed: seed}, name); err != nil {
		return err
	}
	b := x.run.View(x.message, uint32(m.MessageBytes))
	clear(b)
	binary.LittleEndian.PutUint32(b[0:], rowToken)
	binary.LittleEndian.PutUint32(b[4:], bindings)
	if x.saved = x.run.Save(func(uint64) bool { return false }, nil); x.saved == nil {
		return &table.Error{Code: CodeManifest, Place: x.wrapper.asked.source.Use, Reason: "can change more than its memory, so that it cannot be put back after a fault",
			Help: "build it with an SDK"}
	}
	return nil
}

// rowToken is the guest's token for the row.
const rowToken = 1

// layOut gets memory for a column and writes its binding.
func (x *WrapperInstance) layOut(i int, s *Shape, binding, bytes uint32) (err error) {
	c := &s.Columns[i]
	clear(x.run.View(binding, bytes))
	if c.Rows == 0 {
		return nil
	}
	size := c.DType.Bytes()
	p := place{dtype: c.DType}
	agent := c.Elems * size
	row := s.Envs * s.Agents * agent
	p.words = [...]uint32{strideT: uint32(row), strideEnv: uint32(s.Agents * agent), strideAgent: uint32(agent), strideElem: uint32(size),
		rows: uint32(c.Rows), rowAlign: uint32(size), envs: uint32(s.Envs), agents: uint32(s.Agents), elems: uint32(c.Elems)}
	x.pieces[i].n = uint32(c.Rows * row)
	if x.pieces[i].at, err = x.run.Allocate(x.pieces[i].n, 64); err == nil {
		p.write(x.run.View(binding, bytes), x.pieces[i].at, c.Write)
	}
	return err
}

// Column returns the memory of a column. It is valid until Call, and again after it.
func (x *WrapperInstance) Column(i int) []byte { return x.run.View(x.pieces[i].at, x.pieces[i].n) }

// Call asks the guest about the row in the columns. After an error the columns are worthless, and the guest is in its first state.
// Call allocates nothing unless there is an error.
func (x *WrapperInstance) Call() error {
	if x.broken != nil {
		return x.broken
	}
	x.handling, x.answered = true, false
	err := x.run.Slot(uint32(x.wrapper.slot), x.message)
	x.handling = false
	if err == nil && !x.answered {
		err = unanswered(x.wrapper.asked.source.Use)
	}
	if err == nil {
		return nil
	}
	if failed := x.run.Restore(x.saved); failed != nil {
		x.broken = fmt.Errorf("%s cannot be put back after a fault: %w", x.wrapper.asked.source.Use, failed)
	}
	return err
}

// Close ends the guest; rl_stop is not called.
func (x *WrapperInstance) Close() error { return x.run.Close() }

// alone are the imports of a guest outside of a pipeline: it answers, and nothing else.
type alone struct{ x *WrapperInstance }

var _ guest.Services = alone{}

// Emit takes the answer.
func (s alone) Emit(signal, message uint32) (int32, error) {
	x := s.x
	b := x.run.View(message, hostabi.ComponentMessageBytes)
	if b == nil || signal != uint32(x.wrapper.signal) || binary.LittleEndian.Uint32(b) != rowToken {
		return int32(hostabi.StatusArgument), nil
	}
	if !x.handling || x.answered {
		return int32(hostabi.StatusState), nil
	}
	x.answered = true
	return int32(hostabi.OutcomeSent), nil
}

// Lease refuses: a row is gone when its call returns.
func (alone) Lease(uint32) (hostabi.Status, error) { return hostabi.StatusState, nil }

// Release refuses, as nothing is leased.
func (alone) Release(uint32) hostabi.Status { return hostabi.StatusArgument }

// Column refuses: the columns are the ones that the slot has declared.
func (alone) Column(uint32, []byte, hostabi.ColumnFlags, uint32) hostabi.Status {
	return hostabi.StatusUnsupported
}

// Declare makes a metric known.
func (s alone) Declare(kind hostabi.MetricKind, name []byte) int32 {
	text := string(name)
	if kind < hostabi.MetricCounter || kind > hostabi.MetricHistogram || !printable(text) {
		return int32(hostabi.StatusArgument)
	}
	if at := slices.Index(s.x.metrics, text); at >= 0 {
		return int32(at)
	}
	if len(s.x.metrics) == maxMetrics {
		return int32(hostabi.StatusMemory)
	}
	s.x.metrics = append(s.x.metrics, text)
	return int32(len(s.x.metrics) - 1)
}

// Report passes a number on, whatever the kind of its metric.
func (s alone) Report(metric uint32, value float64) {
	if x := s.x; x.metric != nil && metric < uint32(len(x.metrics)) {
		x.metric(x.metrics[metric], value)
	}
}

// Timer refuses: steps are all that a wrapper is called for.
func (alone) Timer(int64, int64) int32 { return int32(hostabi.StatusUnsupported) }

// Cancel refuses; see Timer.
func (alone) Cancel(uint32) hostabi.Status { return hostabi.StatusArgument }

// Stop refuses, because that is not granted to wrappers.
func (alone) Stop(hostabi.StopReason) hostabi.Status { return hostabi.StatusDenied }

// Ask refuses: a wrapper has no place in a graph whose components it could ask.
func (alone) Ask(uint32, []byte, int64) int32 { return int32(hostabi.StatusUnsupported) }
