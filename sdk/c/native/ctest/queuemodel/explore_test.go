package queuemodel

import (
	"fmt"
	"slices"
	"testing"
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
