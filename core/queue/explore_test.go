package queue

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// good reports whether everything has finished: all is put, nothing is left.
func (m *model) good(s *modelState) bool {
	for p := range m.producers {
		if !m.finished(s, p) || s.procs[p].pc != loadIndex {
			return false
		}
	}
	return s.host.pc == idle && !slices.Contains(s.fate[:], published)
}

// explore visits every state and returns how many there are. From each, the end must remain within reach.
func (m *model) explore() (int, error) {
	first := m.start()
	number := map[modelState]int32{first: 0}
	states := []modelState{first}
	var from [][]int32 // predecessors
	from = append(from, nil)
	for i := 0; i < len(states); i++ {
		next, err := m.successors(states[i])
		if err != nil {
			return len(states), err
		}
		for _, s := range next {
			n, known := number[s]
			if !known {
				n = int32(len(states))
				number[s] = n
				states, from = append(states, s), append(from, nil)
			}
			from[n] = append(from[n], int32(i))
		}
	}
	return len(states), m.checkLive(states, from)
}

func (m *model) checkLive(states []modelState, from [][]int32) error {
	reaches := make([]bool, len(states))
	var todo []int32
	for i := range states {
		if m.good(&states[i]) {
			reaches[i] = true
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, j := range from[i] {
			if !reaches[j] {
				reaches[j] = true
				todo = append(todo, j)
			}
		}
	}
	if i := slices.Index(reaches, false); i >= 0 {
		return fmt.Errorf("no way to the end from %+v", states[i])
	}
	return nil
}

func TestModel_EveryInterleavingKeepsEveryMessage(t *testing.T) {
	models := []model{
		{size: 2, producers: [][]uint8{{1, 1}, {1}}, consumers: []uint8{1}, crash: true, restart: true},
		{size: 2, producers: [][]uint8{{2}, {1}}, consumers: []uint8{2}, crash: true, restart: true},
		{size: 2, producers: [][]uint8{{2}, {2}}, consumers: []uint8{1}, crash: true, restart: true},
		{size: 4, producers: [][]uint8{{2, 1}, {2}}, consumers: []uint8{2}, crash: true, restart: true},
		{size: 2, producers: [][]uint8{{1}, {1}}, consumers: []uint8{1, 1}, crash: true, restart: true},
		{size: 2, producers: [][]uint8{{2}, {1}}, consumers: []uint8{2, 2}, crash: true},
		{size: 4, producers: [][]uint8{{2}, {1}}, consumers: []uint8{2, 1}, crash: true},
	}
	if testing.Short() { // the race detector sees nothing here, and takes its time
		models = models[1:3]
	}
	for _, m := range models {
		n, err := m.explore()
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		t.Logf("%d cells, producers %v, consumers %v: %d states", m.size, m.producers, m.consumers, n)
	}
}

func TestModel_FindsMistakes(t *testing.T) {
	for _, fault := range []int{voidFirstFirst, freeFirstFirst, noHelp, blindRest} {
		m := model{
			size: 2, producers: [][]uint8{{2, 2}, {1}}, consumers: []uint8{2}, crash: true, restart: true, fault: fault,
		}
		if n, err := m.explore(); err == nil {
			t.Errorf("mistake %d was not found in %d states", fault, n)
		}
	}
}

// TestModel_AgreesWithTheCode makes the code and the model perform the same operations one after the other, some of
// which stop between two steps and are then repaired, and compares their memories.
func TestModel_AgreesWithTheCode(t *testing.T) {
	rng := testkit.Random(t)
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		agree(t, rng)
	}
}

func agree(t *testing.T, rng *rand.Rand) {
	m := model{size: 2 << rng.IntN(2), producers: [][]uint8{nil, nil}, consumers: []uint8{1, 2}, crash: true}
	for p := range m.producers {
		for range 1 + rng.IntN(2) {
			m.producers[p] = append(m.producers[p], uint8(1+rng.IntN(2)))
		}
	}
	s := m.start()
	q := heapQueue(t, int(m.size), 1)
	for range 12 {
		p := rng.IntN(m.procs())
		if m.finished(&s, p) {
			continue
		}
		stop := rng.IntN(12) // after that many steps that change something
		if s.crashed != 0 {
			stop = 1 << 20
		}
		items := m.itemsFor(&s, p)
		end := q.As(uint16(s.procs[p].owner))
		stopped := stopAfter(stop, func(step func()) {
			if p < len(m.producers) {
				end.putSteps(items, step)
			} else {
				end.getSteps(items, step)
			}
		})
		if err := m.runOne(&s, p, stopped, stop); err != nil {
			t.Fatal(err)
		}
		if stopped {
			q.Recover(end.owner, nil)
		}
		if err := m.compare(&s, q); err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
	}
}

// itemsFor returns the items to put, or room for the items to get.
func (m *model) itemsFor(s *modelState, p int) []Item {
	if p >= len(m.producers) {
		return Items(int(m.consumers[p-len(m.producers)]), 1)
	}
	first, n := m.batch(s, p)
	items := Items(int(n), 1)
	for i := range items {
		items[i].Payload = append(items[i].Payload, first+uint8(i))
	}
	return items
}

// runOne runs one put or get of the model to its end, or until it has made so many changes and is killed, and is
// repaired.
func (m *model) runOne(s *modelState, p int, dies bool, changes int) error {
	step := m.stepConsumer
	if p < len(m.producers) {
		step = m.stepProducer
	}
	for changed := 0; ; {
		if dies && changed == changes {
			return m.die(s, p)
		}
		pc := s.procs[p].pc
		if err := step(s, p); err != nil {
			return err
		}
		if pc >= casFirst && pc != help && !(pc == casFirst && s.procs[p].pc == loadIndex) {
			changed++
		}
		voided := pc == voidFree // the get continues with the next cell
		if s.procs[p].pc == loadIndex && !voided {
			return nil
		}
	}
}

func (m *model) die(s *modelState, p int) error {
	*s = m.kill(*s, p)
	for s.host.pc != idle {
		if err := m.stepHost(s); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) compare(s *modelState, q *MPMC) error {
	if uint64(s.tail) != q.h.Tail.Load() || uint64(s.head) != q.h.Head.Load() {
		return fmt.Errorf("model has tail %d, head %d, code %d, %d", s.tail, s.head, q.h.Tail.Load(), q.h.Head.Load())
	}
	for i := range m.size {
		c := q.cells.at(uint64(i))
		if w := word(c.ctl.Load()); w != s.cells[i] {
			return fmt.Errorf("cell %d: model has %x, code %x", i, s.cells[i], w)
		}
		if s.cells[i].state() == 2 && !bytes.Equal(c.payload(1), []byte{s.values[i]}) {
			return fmt.Errorf("cell %d: model has message %d, code %d", i, s.values[i], c.payload(1))
		}
	}
	return nil
}
