package ppo

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/rlhost/rlhost/core/reduce"
	"github.com/rlhost/rlhost/gpu/policy"
)

// ErrFar is wrapped by what a learner on another host leaves with: its host is lost, or it cannot learn.
var ErrFar = errors.New("a learner on another host is lost")

// HostCaller is another host that can learn; Learns answers its calls.
type HostCaller interface {
	// Name is the host's name. A host that comes again has the same.
	Name() string
	// Call has the host do something once, and returns its reply. It ends with an error once the host is lost.
	Call(data []byte) ([]byte, error)
}

// Hosts are the other hosts of a learner. The zero value is none.
type Hosts struct {
	Most   int                 // learners on other hosts at once, one on each
	Here   func() []HostCaller // that are here now, in the same order whenever
	Policy string              // that is learned
	Log    *slog.Logger
}

// away is the part of a team that is about other hosts.
type away struct {
	hosts   Hosts
	network *policy.Network
	config  Config
	backend policy.Backend
	current []string // hosts that learn
	refused []string // hosts that have other bits, or cannot learn
}

// newcomers returns hosts that can learn besides the number that do.
func (a *away) newcomers(here int) (list []HostCaller) {
	if a.hosts.Most <= here {
		return nil
	}
	for _, h := range a.hosts.Here() {
		if len(list) < a.hosts.Most-here && !slices.Contains(a.current, h.Name()) && !slices.Contains(a.refused, h.Name()) {
			list = append(list, h)
		}
	}
	return list
}

// open returns an engine on a host, with that state, or nil where it cannot learn.
func (a *away) open(h HostCaller, s State) *far {
	f := &far{host: h}
	back, _ := f.ask(farCall{Op: opOpen, Network: a.network, Config: &a.config, Backend: a.backend.Name(), Policy: a.hosts.Policy,
		AdamSteps: s.AdamSteps, LearningRate: s.LearningRate}, floatsTo(nil, s.Params), floatsTo(nil, s.AdamM), floatsTo(nil, s.AdamV))
	if f.err != nil {
		a.refused = append(a.refused, h.Name())
		a.hosts.Log.Warn("a host cannot learn", "host", h.Name(), "why", f.err)
		return nil
	}
	a.current = append(a.current, h.Name())
	a.hosts.Log.Info("a host learns", "host", h.Name(), "policy", a.hosts.Policy, "kernels", back.Kernels)
	return f
}

// lose notes that an engine learns no more.
func (a *away) lose(f *far) {
	a.current = slices.DeleteFunc(a.current, func(name string) bool { return name == f.host.Name() })
	if f.err != nil {
		a.hosts.Log.Warn("a host learns no more", "host", f.host.Name(), "policy", a.hosts.Policy, "why", f.err)
	}
}

// compare ends engines on other hosts whose parameters differ from the first one's: their processors round otherwise.
func (a *away) compare(engines []*member) {
	params := make([]float32, a.network.ParamCount())
	if engines[0].Params(params) != nil {
		return
	}
	want := hashOf(params)
	for _, m := range engines {
		if m.far != nil && m.far.err == nil && m.far.hash != want {
			m.far.err = fmt.Errorf("%w: its parameters have other bits after an update: is it a processor of another kind?", ErrFar)
			a.refused = append(a.refused, m.far.host.Name())
		}
	}
}

// far is an engine on another host: calls are sent there, and the gradients that come back are added up here.
type far struct {
	host HostCaller
	seat *reduce.Seat
	err  error // why it is of no more use

	vector  []float32
	numbers []float64
	bytes   []byte
	hash    uint64 // of its parameters
	sums    int    // that it took part in
	must    bool   // the next call is to take part in one
}

var _ Seated = (*far)(nil)

// ask makes one call. An error is the engine's end, and the others miss it.
func (f *far) ask(c farCall, blobs ...[]byte) (back answer, rest []byte) {
	if f.err != nil {
		return answer{}, nil
	}
	reply, err := f.host.Call(packCall(c, blobs...))
	if err == nil {
		rest, err = unpack(reply, &back)
	}
	if err == nil && back.Error != "" {
		err = errors.New(back.Error)
	}
	f.end(err)
	return back, rest
}

// end ends the use of the engine, if there is an error.
func (f *far) end(err error) {
	if err == nil || f.err != nil {
		return
	}
	f.err = fmt.Errorf("%w: %s: %w", ErrFar, f.host.Name(), err)
	if f.seat != nil {
		f.seat.Leave(f.err)
	}
}

// do makes a call, and takes part in the sums that the host asks for.
func (f *far) do(c farCall, blobs ...[]byte) answer {
	back, rest := f.ask(c, blobs...)
	before := f.sums
	for f.err == nil && back.Summing {
		f.sums++
		back, rest = f.sum(&back, rest)
	}
	if f.must && f.sums == before {
		f.end(errors.New("it has no gradient")) // the others wait for it
	}
	f.must = false
	return back
}

func (f *far) sum(own *answer, rest []byte) (back answer, more []byte) {
	var err error
	if own.Numbers != lossNumbers {
		err = fmt.Errorf("it has %d sums of losses, want %d", own.Numbers, lossNumbers)
	} else if f.numbers, rest, err = numbersOf(rest, own.Numbers, f.numbers); err == nil {
		f.vector, err = floatsOf(rest, f.vector)
	}
	if err != nil {
		f.end(err)
		return answer{}, nil
	}
	sum, all, err := f.seat.Sum(f.vector, f.numbers)
	if errors.Is(err, reduce.ErrLength) { // no engine here has another than the first
		f.end(err)
	}
	if err != nil {
		return f.ask(farCall{Op: opMissed, Why: err.Error(), Far: errors.Is(err, ErrFar)})
	}
	var numbers []byte
	for _, x := range all {
		numbers = numbersTo(numbers, x)
	}
	f.bytes = floatsTo(f.bytes[:0], sum)
	return f.ask(farCall{Op: opSum, Numbers: own.Numbers}, numbers, f.bytes)
}

// Sit tells the host its seat.
func (f *far) Sit(s Seat) {
	f.seat = s.(*reduce.Seat)
	number, of := f.seat.Place()
	f.do(farCall{Op: opSit, Seat: number, Seats: of})
}

// Missed is false: the first engine says it.
func (f *far) Missed() bool { return false }

// Begin sends the round's dataset.
func (f *far) Begin(r *Round) {
	d := r.Dataset
	document := d.Blocks[0].Schema.Document()
	blobs := [][]byte{floatsTo(nil, d.ObsMean), floatsTo(nil, d.ObsScale), floatsTo(nil, d.Warm)}
	for i := range d.Blocks {
		blobs = append(blobs, d.Blocks[i].Mem)
	}
	f.do(farCall{Op: opBegin, Rates: r.Rates, Unit: r.Unit, Schema: document, Parts: d.Parts, Seed: d.Seed, Index: d.Index, BurnInRows: d.BurnInRows}, blobs...)
}

// Target is Engine's.
func (f *far) Target() { f.do(farCall{Op: opTarget}) }

// Epoch is Engine's.
func (f *far) Epoch(rows []uint32) { f.do(farCall{Op: opEpoch}, rowsTo(nil, rows)) }

// Step is Engine's.
func (f *far) Step(lo int, ends []int) { f.do(farCall{Op: opStep, Lo: lo, Ends: ends}) }

// Finish returns how much was gathered there.
func (f *far) Finish() (Stats, error) {
	back := f.do(farCall{Op: opFinish})
	f.hash = back.Hash
	return Stats{Gathered: back.Gathered}, nil
}

// Rescale is Engine's.
func (f *far) Rescale(h Head, scale, shift float64) {
	f.do(farCall{Op: opRescale, Head: h, Scale: scale, Shift: shift})
}

// Over is the first engine's, and so are Params, State and SetState.
func (f *far) Over() bool { return false }

func (f *far) Params([]float32) error { return ErrFar }
func (f *far) State() (State, error)  { return State{}, ErrFar }
func (f *far) SetState(s State) error { return ErrFar }

// Close leaves the host alone: it forgets the engine when its run ends, or another is opened.
func (f *far) Close() error { return nil }
