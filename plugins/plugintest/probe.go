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
func (c *Probe) Manifest() component.Manifest {
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
	for i := range c.config.Inputs {
		m.Slots = append(m.Slots, component.Port{Name: inputName(i), Payload: c.config.Carries, Doc: "says which input it is"})
	}
	return m
}

func inputName(i int) string { return fmt.Sprintf("on_input_%d", i) }

// Configure reads the probe's table and names every key that is wrong.
func (c *Probe) Configure(decode func(into any) error) error {
	c.config = probeConfig{Scale: 1, Blocks: 4, BlockBytes: 4096, Carries: "number"}
	if err := decode(&c.config); err != nil {
		return err
	}
	var errs []error
	between := func(key string, n, lo, hi int) {
		if n < lo || n > hi {
			errs = append(errs, &component.ConfigError{Key: key, Reason: fmt.Sprintf("is %d, want %d to %d", n, lo, hi)})
		}
	}
	between("scale", c.config.Scale, 1, 1000)
	if c.config.Label == "bad" {
		errs = append(errs, &component.ConfigError{Key: "label", Reason: `is "bad"`, Help: "use another word", Code: "E020"})
	}
	between("blocks", c.config.Blocks, 1, 64)
	between("block_bytes", c.config.BlockBytes, 64, 1<<20)
	between("inputs", c.config.Inputs, 0, 8)
	return errors.Join(errs...)
}

// errTold is why a probe fails.
var errTold = errors.New("told to fail")

// Start makes the probe's arena.
func (c *Probe) Start(h *component.Host) error {
	c.h = h
	if c.config.FailStart {
		return errTold
	}
	c.numbers, c.blocks = h.Signal("numbers"), h.Signal("blocks")
	c.answers, c.asks = h.Signal("answers"), h.Signal("asks")
	h.Slot("on_number", c.onNumber)
	h.Slot("on_block", c.onBlock)
	h.Slot("on_ask", c.onAsk)
	h.Slot("on_answer", c.onAnswer)
	for i := range c.config.Inputs {
		h.Slot(inputName(i), func(m *hostabi.Message) { c.say(hostabi.Message{Kind: m.Kind, T: uint32(i)}) })
	}
	a, err := h.Arenas.Add(arena.Config{Name: "probe", Blocks: c.config.Blocks, BlockBytes: c.config.BlockBytes})
	c.arena = a
	return err
}

// say emits on numbers.
func (c *Probe) say(m hostabi.Message) { c.emit(c.numbers, m) }

func (c *Probe) emit(on *bus.Signal, m hostabi.Message) {
	if err := on.Emit(m); err != nil {
		c.h.Fail(err)
	}
}

// probeState is the part of a probe's state that is no tensor.
type probeState struct {
	Numbers uint64 `json:"numbers"`
	Sum     uint64 `json:"sum"`
}

// Snapshot saves the counters, the history and the label.
func (c *Probe) Snapshot() (component.State, error) {
	return component.State{
		Meta:    probeState{c.count, c.sum},
		Tensors: map[string]component.Tensor{"history": {Shape: []int{len(c.history)}, Data: append([]float32(nil), c.history[:]...)}},
		Blobs:   map[string][]byte{"label": []byte(c.config.Label)},
	}, nil
}

// Restore takes the state of a probe with the same label.
func (c *Probe) Restore(s component.State) error {
	var from probeState
	if err := s.Decode(&from); err != nil {
		return fmt.Errorf("label or counters: %w", err)
	}
	if label := string(s.Blobs["label"]); label != c.config.Label {
		return fmt.Errorf("the saved state has label %q, this probe %q", label, c.config.Label)
	}
	history := s.Tensors["history"].Data
	if len(history) != len(c.history) {
		return fmt.Errorf("the saved history has %d numbers, want %d (label %q)", len(history), len(c.history), c.config.Label)
	}
	c.count, c.sum = from.Numbers, from.Sum
	copy(c.history[:], history)
	return nil
}

// Stop releases everything that the probe holds.
func (c *Probe) Stop() error {
	var errs []error
	for i := range c.leases {
		errs = append(errs, c.leases[i].Release())
	}
	for _, l := range append(c.loans, c.asked...) {
		errs = append(errs, l.Abort())
	}
	c.leases, c.loans, c.asked, c.held = nil, nil, nil, nil
	return errors.Join(errs...)
}

// remember counts a message of on_number.
func (c *Probe) remember(m *hostabi.Message) {
	c.count++
	copy(c.history[:], c.history[1:])
	c.history[len(c.history)-1] = float32(m.Inline[0] % (1 << 16))
}

func bits(f float32) uint64 { return math.Float64bits(float64(f)) }
