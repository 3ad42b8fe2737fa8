package reduce

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrLost is wrapped by the error of a sum that a seat has left.
var ErrLost = errors.New("a learner has left")

// ErrLength is wrapped too where the seats' vectors are not as long.
var ErrLength = errors.New("vectors of two lengths")

// Team is a number of seats that add up vectors together.
type Team struct {
	seats []Seat
	sum   []float32 // of the vectors' length when all seats have brought one; each writes its part before they meet again

	met    atomic.Uint64 // meetings that all seats have come to; written under mu, read by who waits without it
	mu     sync.Mutex
	more   sync.Cond // met has grown, or lost is set
	here   int       // seats at the next meeting
	length int       // of the vectors that they have brought
	lost   error
}

// Seat is the place of one learner of a team. It belongs to one goroutine, but for Leave.
type Seat struct {
	team    *Team
	number  int
	vector  []float32
	numbers []float64
	seen    [][]float64 // numbers of all seats
}

// New returns a team with so many seats, one or more.
func New(seats int) *Team {
	t := &Team{seats: make([]Seat, seats)}
	t.more.L = &t.mu
	for i := range t.seats {
		t.seats[i] = Seat{team: t, number: i, seen: make([][]float64, seats)}
	}
	return t
}

// Seat returns a seat, counted from 0.
func (t *Team) Seat(number int) *Seat { return &t.seats[number] }

// Gather has all seats back at the beginning. No seat may be in a sum.
func (t *Team) Gather() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.here, t.lost = 0, nil
}

// Place returns the number of the seat, from 0, and how many there are.
func (s *Seat) Place() (number, of int) { return s.number, len(s.team.seats) }

// Share returns which of n units are the seat's. Shares are contiguous, in the order of seats, and differ by one at most.
func (s *Seat) Share(n int) (lo, hi int) { return Share(n, s.number, len(s.team.seats)) }

// Share returns which of n units a seat has.
func Share(n, seat, seats int) (lo, hi int) { return n * seat / seats, n * (seat + 1) / seats }

// Sum returns the sum of the vectors of all seats, and the numbers of all in the order of seats: until the seat's next sum, for
// reading. It waits for the other seats, whose vectors must be as long. Vectors must stay as they are until it returns. After an error no
// seat has got that sum, and all further ones fail with it until Gather.
func (s *Seat) Sum(vector []float32, numbers []float64) (sum []float32, all [][]float64, err error) {
	t := s.team
	s.vector, s.numbers = vector, numbers
	if err := t.meet(len(vector)); err != nil {
		return nil, nil, err
	}
	for i := range t.seats {
		s.seen[i] = append(s.seen[i][:0], t.seats[i].numbers...)
	}
	t.add(s.Share(len(vector)))
	if err := t.meet(len(vector)); err != nil {
		return nil, nil, err
	}
	return t.sum, s.seen, nil
}

// add leaves a part of the sum.
func (t *Team) add(lo, hi int) {
	sum := t.sum[lo:hi]
	copy(sum, t.seats[0].vector[lo:hi])
	for i := range t.seats[1:] {
		addTo(sum, t.seats[1+i].vector[lo:hi])
	}
}

// addTo adds a vector to another, four elements at a time: the compiler leaves one at a time as it is.
func addTo(sum, x []float32) {
	x = x[:len(sum)]
	for len(sum) >= 4 && len(x) >= 4 {
		sum[0] += x[0]
		sum[1] += x[1]
		sum[2] += x[2]
		sum[3] += x[3]
		sum, x = sum[4:], x[4:]
	}
	for i := range x {
		sum[i] += x[i]
	}
}

// Leave ends all sums of the team that are not complete, and each that follows, with an error that wraps ErrLost and why. Any goroutine.
func (s *Seat) Leave(why error) {
	t := s.team
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost == nil {
		t.lost = fmt.Errorf("%w: %d of %d: %w", ErrLost, s.number, len(t.seats), why)
		t.more.Broadcast()
	}
}

// spins is how often who waits looks before it sleeps: some microseconds, which is as long as learners of a small network are apart.
const spins = 30_000

// meet returns once all seats are here. A meeting that all have come to has taken place, also for a seat that leaves afterwards.
func (t *Team) meet(length int) error {
	t.mu.Lock()
	if t.lost == nil && t.here > 0 && t.length != length {
		t.lost = fmt.Errorf("%w: %w: %d and %d elements", ErrLost, ErrLength, t.length, length)
		t.more.Broadcast()
	}
	if t.lost != nil {
		defer t.mu.Unlock()
		return t.lost
	}
	t.length = length
	t.here++
	before := t.met.Load()
	if t.here == len(t.seats) {
		t.here = 0
		t.sum = slices.Grow(t.sum[:0], length)[:length]
		t.met.Add(1)
		t.more.Broadcast()
		t.mu.Unlock()
		return nil
	}
	t.mu.Unlock()
	for range spins {
		if t.met.Load() != before {
			return nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.met.Load() == before {
		if t.lost != nil {
			return t.lost
		}
		t.more.Wait()
	}
	return nil
}
