package plugintest

import (
	"errors"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// Operations of messages to the slot on_number.
const (
	OpEcho     = iota // emit a copy on numbers
	OpCount           // the same with Inline = how many numbers there were, and the sum
	OpAdd             // add Inline[0] * scale to the sum
	OpMake            // make Inline[1] blocks whose byte i is Inline[0]+i, and emit each on blocks
	OpAbort           // loan a block and abort it
	OpRelease         // sum and release each lease that is held
	OpLease           // try to lease the handle Inline[0]; Inline[1] of the answer is a OpLease… value
	OpStop            // ask for the end of the run; Inline[0] is a hostabi.LinkStop… value
	OpBoundary        // reach a dataset boundary
	OpFail            // fail
	OpStat            // count Inline[0], set and observe the float64 with the bits Inline[1]
	OpLog             // log a warning with Inline[0]
	OpBurst           // emit Inline[0] copies, T = 0, 1, …
	OpAsk             // ask about a block on loan that begins with Inline[0]
	OpReply           // answer the held requests
	OpHistory         // the first and the last of the newest four numbers
	OpSleep           // sleep Inline[0] milliseconds
	OpExit            // end the process with the status Inline[0]
	OpConfig          // report the configuration
	OpKeep            // loan a block and never end the loan
)

// Operations of messages to the slot on_block; others do nothing.
const (
	BlockSum   = iota // emit the sum of the block's bytes on numbers
	BlockHold         // lease the block until OpRelease
	BlockPass         // emit the block on blocks
	BlockTwice        // sum with the second of two leases
	BlockQuiet        // nothing
)

// How a lease went.
const (
	LeaseTaken = iota
	LeaseStale
	LeaseForeign
	LeaseRange
	LeaseUncommitted
)

// AskLater is the Kind of a request that is answered when OpReply comes.
const AskLater = 1

// askLost is the Kind of the answer to a request whose block the probe cannot reach.
const askLost = 99

// probeConfig is the probe's table.
type probeConfig struct {
	Scale      int    `toml:"scale"`
	Label      string `toml:"label"`
	Blocks     int    `toml:"blocks"`
	BlockBytes int    `toml:"block_bytes"`
	FailStart  bool   `toml:"fail_start"`
	Inputs     int    `toml:"inputs"`  // slots on_input_0, on_input_1, …
	Carries    string `toml:"carries"` // their payload
	Nested     struct {
		Value int `toml:"value"`
	} `toml:"nested"`
}

// Probe is a component that follows its messages, for the conformance tests of runtimes. The same probe is written in
// every language that plugins are written in.
type Probe struct {
	config  probeConfig
	h       *component.Host
	arena   *arena.Arena
	numbers *bus.Signal
	blocks  *bus.Signal
	answers *bus.Signal
	asks    *bus.Signal

	count   uint64
	sum     uint64
	history [4]float32
	leases  []arena.Lease
	loans   []arena.Loan      // kept forever
	asked   []arena.Loan      // until they are answered
	held    []hostabi.Message // unanswered requests
	rested  func()            // of a Pause, until it is called
}

var _ component.Component = (*Probe)(nil)

// NewProbe returns an unconfigured probe.
func NewProbe() component.Component { return &Probe{} }

// Manifest lists the ports: as many inputs as the table says.
func (p *Probe) Manifest() component.Manifest {
	m := component.Manifest{
		Signals: []component.Port{
			{Name: "numbers", Payload: "number", Doc: "what on_number was told to say", Schema: 0x8000000000000005},
			{Name: "blocks", Payload: "tensor", Doc: "blocks made and passed on"},
			{Name: "answers", Payload: "answer", OnLoan: true, Doc: "rows that others have asked about"},
			{Name: "asks", Payload: "ask", OnLoan: true, Doc: "a row of a block on loan"},
		},
		Slots: []component.Port{
			{Name: "on_number", Payload: "number", Doc: "what to do", Schema: 7},
			{Name: "on_block", Payload: "tensor", Doc: "a block"},
			{Name: "on_ask", Payload: "ask", Doc: "a row to write"},
			{Name: "on_answer", Payload: "answer", Doc: "the row is written"},
		},
	}
	for i := range p.config.Inputs {
		m.Slots = append(m.Slots, component.Port{Name: inputName(i), Payload: p.config.Carries, Doc: "says which input it is"})
	}
	return m
}

func inputName(i int) string { return fmt.Sprintf("on_input_%d", i) }

// Configure reads the probe's table and names every key that is wrong.
func (p *Probe) Configure(decode func(into any) error) error {
	p.config = probeConfig{Scale: 1, Blocks: 4, BlockBytes: 4096, Carries: "number"}
	if err := decode(&p.config); err != nil {
		return err
	}
	var errs []error
	between := func(key string, n, lo, hi int) {
		if n < lo || n > hi {
			errs = append(errs, &component.ConfigError{Key: key, Reason: fmt.Sprintf("is %d, want %d to %d", n, lo, hi)})
		}
	}
	between("scale", p.config.Scale, 1, 1000)
	if p.config.Label == "bad" {
		errs = append(errs, &component.ConfigError{Key: "label", Reason: `is "bad"`, Help: "use another word", Code: "E020"})
	}
	between("blocks", p.config.Blocks, 1, 64)
	between("block_bytes", p.config.BlockBytes, 64, 1<<20)
	between("inputs", p.config.Inputs, 0, 8)
	return errors.Join(errs...)
}

// errTold is why a probe fails.
var errTold = errors.New("told to fail")

// Start makes the probe's arena.
func (p *Probe) Start(h *component.Host) error {
	p.h = h
	if p.config.FailStart {
		return errTold
	}
	p.numbers, p.blocks = h.Signal("numbers"), h.Signal("blocks")
	p.answers, p.asks = h.Signal("answers"), h.Signal("asks")
	h.Slot("on_number", p.onNumber)
	h.Slot("on_block", p.onBlock)
	h.Slot("on_ask", p.onAsk)
	h.Slot("on_answer", p.onAnswer)
	for i := range p.config.Inputs {
		h.Slot(inputName(i), func(m *hostabi.Message) { p.say(hostabi.Message{Kind: m.Kind, T: uint32(i)}) })
	}
	a, err := h.Arenas.Add(arena.Config{Name: "probe", Blocks: p.config.Blocks, BlockBytes: p.config.BlockBytes})
	p.arena = a
	return err
}

// say emits on numbers.
func (p *Probe) say(m hostabi.Message) { p.emit(p.numbers, m) }

func (p *Probe) emit(on *bus.Signal, m hostabi.Message) {
	if err := on.Emit(m); err != nil {
		p.h.Fail(err)
	}
}

// probeState is the part of a probe's state that is no tensor.
type probeState struct {
	Numbers uint64 `json:"numbers"`
	Sum     uint64 `json:"sum"`
}

// Snapshot saves the counters, the history and the label.
func (p *Probe) Snapshot() (component.State, error) {
	return component.State{
		Meta:    probeState{p.count, p.sum},
		Tensors: map[string]component.Tensor{"history": {Shape: []int{len(p.history)}, Data: append([]float32(nil), p.history[:]...)}},
		Blobs:   map[string][]byte{"label": []byte(p.config.Label)},
	}, nil
}

// Restore takes the state of a probe with the same label.
func (p *Probe) Restore(s component.State) error {
	var from probeState
	if err := s.Decode(&from); err != nil {
		return fmt.Errorf("label or counters: %w", err)
	}
	if label := string(s.Blobs["label"]); label != p.config.Label {
		return fmt.Errorf("the saved state has label %q, this probe %q", label, p.config.Label)
	}
	history := s.Tensors["history"].Data
	if len(history) != len(p.history) {
		return fmt.Errorf("the saved history has %d numbers, want %d (label %q)", len(history), len(p.history), p.config.Label)
	}
	p.count, p.sum = from.Numbers, from.Sum
	copy(p.history[:], history)
	return nil
}

// Stop releases everything that the probe holds.
func (p *Probe) Stop() error {
	var errs []error
	for i := range p.leases {
		errs = append(errs, p.leases[i].Release())
	}
	for _, l := range append(p.loans, p.asked...) {
		errs = append(errs, l.Abort())
	}
	p.leases, p.loans, p.asked, p.held = nil, nil, nil, nil
	return errors.Join(errs...)
}

// remember counts a message of on_number.
func (p *Probe) remember(m *hostabi.Message) {
	p.count++
	copy(p.history[:], p.history[1:])
	p.history[len(p.history)-1] = float32(m.Inline[0] % (1 << 16))
}

func bits(f float32) uint64 { return math.Float64bits(float64(f)) }
