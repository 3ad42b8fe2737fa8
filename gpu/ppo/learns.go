package ppo

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/reduce"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
)

// Learns is the other side of a learner on another host: it answers the calls of one team at a time.
type Learns struct {
	backend func(name string) (policy.Backend, error)

	engine  Seated
	network *policy.Network
	policy  string
	seat    *farSeat
	round   Round
	dataset policy.Dataset
	rows    []uint32
	running chan answer // the call under way ends; nil if there is none
	summing bool        // it waits for a sum
}

// NewLearns returns a side that makes backends by their names.
func NewLearns(backend func(name string) (policy.Backend, error)) *Learns {
	return &Learns{backend: backend}
}

// Handle does what a call asks for and returns the reply. It belongs to one goroutine.
func (l *Learns) Handle(data []byte) []byte {
	c, blobs, err := unpackCall(data)
	if err != nil {
		return refused(err)
	}
	answers := c.Op == opSum || c.Op == opMissed
	if !answers {
		l.abandon()
	}
	switch {
	case c.Op == opOpen:
		return l.open(&c, blobs)
	case l.engine == nil:
		return refused(errors.New("it has not been opened"))
	case answers && !l.summing:
		return refused(errors.New("it waits for no sum"))
	case c.Op == opSum:
		err = l.summed(&c, blobs)
	case c.Op == opMissed:
		missed := errors.New(c.Why)
		if c.Far {
			missed = fmt.Errorf("%w: %s", ErrFar, c.Why)
		}
		l.answer(total{err: missed})
	default:
		err = l.begin(&c, blobs)
	}
	if err != nil {
		return refused(err)
	}
	return l.wait()
}

func refused(err error) []byte { return pack(&answer{Error: err.Error()}) }

// abandon ends the call under way of a team that has forgotten it.
func (l *Learns) abandon() {
	for l.running != nil {
		if l.summing {
			l.answer(total{err: reduce.ErrLost})
		}
		l.wait()
	}
}

// wait returns the reply of the call under way, or asks for a sum.
func (l *Learns) wait() []byte {
	select {
	case back := <-l.running:
		l.running = nil
		if back.Error == "" && l.seat.left != nil {
			back.Error = l.seat.left.Error()
		}
		return pack(&back)
	case o := <-l.seat.offers:
		l.summing = true
		return pack(&answer{Summing: true, Numbers: len(o.numbers)}, numbersTo(nil, o.numbers), floatsTo(nil, o.vector))
	}
}

// answer gives the engine what it waits for.
func (l *Learns) answer(t total) {
	l.summing = false
	l.seat.summed <- t
}

// summed gives the engine the sum that it waits for.
func (l *Learns) summed(c *farCall, blobs [][]byte) error {
	if len(blobs) != 2 || c.Numbers < 1 && len(blobs[0]) > 0 {
		return errCall
	}
	sum, err := floatsOf(blobs[1], nil)
	if err != nil {
		return err
	}
	t := total{sum: sum}
	for rest := blobs[0]; len(rest) > 0; {
		var numbers []float64
		if numbers, rest, err = numbersOf(rest, c.Numbers, nil); err != nil {
			return err
		}
		t.all = append(t.all, numbers)
	}
	l.answer(t)
	return nil
}

// open makes the engine.
func (l *Learns) open(c *farCall, blobs [][]byte) []byte {
	fail := func(err error) []byte {
		l.engine = nil
		return refused(err)
	}
	if c.Network == nil || c.Config == nil || len(blobs) != 3 {
		return fail(errCall)
	}
	if err := errors.Join(c.Network.Validate(), c.Config.Validate()); err != nil {
		return fail(err)
	}
	b, err := l.backend(c.Backend)
	if err != nil {
		return fail(err)
	}
	p, err := b.Compile(c.Network)
	if err != nil {
		return fail(err)
	}
	divides, ok := p.(Dividing)
	if !ok {
		return fail(fmt.Errorf("backend %s learns with one learner", b.Name()))
	}
	s := State{AdamSteps: c.AdamSteps, LearningRate: c.LearningRate}
	for i, to := range []*[]float32{&s.Params, &s.AdamM, &s.AdamV} {
		if *to, err = floatsOf(blobs[i], nil); err != nil || len(*to) != c.Network.ParamCount() {
			return fail(errCall)
		}
	}
	e, err := divides.NewSeated(s.Params, *c.Config)
	if err == nil {
		err = e.SetState(s)
	}
	if err != nil {
		return fail(err)
	}
	if l.engine != nil {
		err = l.engine.Close()
	}
	l.engine, l.network, l.policy = e, c.Network, c.Policy
	l.seat = &farSeat{offers: make(chan offer), summed: make(chan total), seats: 1}
	l.engine.Sit(l.seat)
	if err != nil {
		return fail(err)
	}
	return pack(&answer{Kernels: b.Kernels()})
}

// begin begins a call of a method of the engine.
func (l *Learns) begin(c *farCall, blobs [][]byte) error {
	do := func() (back answer) { return back }
	switch c.Op {
	case opSit:
		if c.Seats < 1 || c.Seat < 0 || c.Seat >= c.Seats {
			return errCall
		}
		l.seat.number, l.seat.seats = c.Seat, c.Seats
		l.engine.Sit(l.seat)
	case opBegin:
		if err := l.read(c, blobs); err != nil {
			return err
		}
		do = func() (back answer) { l.engine.Begin(&l.round); return back }
	case opTarget, opEpoch, opStep, opFinish:
		if l.round.Dataset == nil {
			return errors.New("it has no dataset")
		}
		var err error
		if do, err = l.method(c, blobs); err != nil {
			return err
		}
	case opRescale:
		do = func() (back answer) { l.engine.Rescale(c.Head, c.Scale, c.Shift); return back }
	default:
		return fmt.Errorf("%w: %q", errCall, c.Op)
	}
	l.running = make(chan answer, 1)
	go func() { l.running <- do() }()
	return nil
}

// method returns the call of a method that is about the round.
func (l *Learns) method(c *farCall, blobs [][]byte) (do func() answer, err error) {
	switch c.Op {
	case opTarget:
		return func() (back answer) { l.engine.Target(); return back }, nil
	case opEpoch:
		if len(blobs) != 1 {
			return nil, errCall
		}
		if l.rows, err = rowsOf(blobs[0]); err != nil {
			return nil, err
		}
		all := uint32(l.dataset.Rows())
		for _, row := range l.rows {
			if row >= all {
				return nil, errCall
			}
		}
		return func() (back answer) { l.engine.Epoch(l.rows); return back }, nil
	case opStep:
		at := c.Lo
		for _, end := range c.Ends {
			if at < 0 || end <= at || end > len(l.rows) {
				return nil, errCall
			}
			at = end
		}
		if len(c.Ends) == 0 {
			return nil, errCall
		}
		return func() (back answer) { l.engine.Step(c.Lo, c.Ends); return back }, nil
	}
	return l.finish, nil
}

// finish ends the update, and says what its parameters are.
func (l *Learns) finish() (back answer) {
	stats, _ := l.engine.Finish() // an error has ended the update for all
	l.round.Dataset, l.rows = nil, nil
	params := make([]float32, l.network.ParamCount())
	if err := l.engine.Params(params); err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Gathered: stats.Gathered, Hash: hashOf(params)}
}

// read makes the round of a call.
func (l *Learns) read(c *farCall, blobs [][]byte) (err error) {
	if c.Schema == nil || len(blobs) < 4 {
		return errCall
	}
	decoded, err := trajectory.DecodeSchema(c.Schema, len(blobs[3]))
	if err != nil {
		return err
	}
	schema, ok := decoded.(*trajectory.Schema)
	if !ok {
		return errCall
	}
	if schema, err = schema.Of(l.policy); err != nil {
		return err
	}
	d := policy.Dataset{Parts: c.Parts, Seed: c.Seed, Index: c.Index, BurnInRows: c.BurnInRows}
	for i, to := range []*[]float32{&d.ObsMean, &d.ObsScale, &d.Warm} {
		if *to, err = floatsOf(blobs[i], nil); err != nil {
			return err
		}
	}
	for _, blob := range blobs[3:] {
		if len(blob) != len(blobs[3]) {
			return errCall
		}
		d.Blocks = append(d.Blocks, trajectory.Trajectory{Schema: schema, Mem: pages(blob)})
	}
	if err := d.Check(l.network); err != nil {
		return err
	}
	l.dataset = d
	l.round.Dataset, l.round.Rates, l.round.Unit = &l.dataset, c.Rates, c.Unit
	if err := l.round.Samples.Read(&l.dataset, l.network); err != nil {
		l.round.Dataset = nil
		return err
	}
	l.round.Samples.normalise(c.Unit)
	return nil
}

// pages copies a block to memory of its own, which begins with a page as blocks do: Go gives whole pages to what is as large.
func pages(block []byte) []byte {
	const large = 64 << 10
	mem := make([]byte, max(len(block), large))[:len(block)]
	copy(mem, block)
	return mem
}

// farSeat is a seat at a team on another host.
type farSeat struct {
	number, seats int
	offers        chan offer
	summed        chan total
	left          error // written by the call under way
}

type offer struct {
	vector  []float32
	numbers []float64
}

type total struct {
	sum []float32
	all [][]float64
	err error
}

var _ Seat = (*farSeat)(nil)

// Place is Seat's.
func (s *farSeat) Place() (number, of int) { return s.number, s.seats }

// Sum is Seat's.
func (s *farSeat) Sum(vector []float32, numbers []float64) (sum []float32, all [][]float64, err error) {
	s.offers <- offer{vector, numbers}
	t := <-s.summed
	if t.err == nil && len(t.sum) != len(vector) {
		t.err = errCall
	}
	return t.sum, t.all, t.err
}

// Leave is Seat's. The team hears it when the call ends.
func (s *farSeat) Leave(why error) { s.left = why }
