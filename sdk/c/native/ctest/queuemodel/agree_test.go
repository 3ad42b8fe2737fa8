package queuemodel

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/sdk/c/native/ctest"
)

// never is a number of changes that no call makes.
const never = 1 << 20

// TestModel_AgreesWithC makes the library and the model perform the same operations one after the other, some of which
// stop between two changes and are then repaired, and compares their memories.
func TestModel_AgreesWithC(t *testing.T) {
	program := ctest.Build(t, ctest.Stepped, "../../testdata/steps.c")
	rng := testkit.Random(t)
	rounds := 500
	if testing.Short() {
		rounds = 50
	}
	for _, kind := range []string{"cells", "bytes"} {
		for range rounds {
			agree(t, rng, program, kind)
		}
	}
}

func agree(t *testing.T, rng *rand.Rand, program, kind string) {
	m := model{size: 2 << rng.IntN(2), producers: [][]uint8{nil, nil}, consumers: []uint8{1, 2}, crash: true}
	for p := range m.producers {
		for range 1 + rng.IntN(2) {
			m.producers[p] = append(m.producers[p], uint8(1+rng.IntN(2)))
		}
	}
	s := m.start()
	q := startQueue(t, program, kind, int(m.size))
	for range 12 {
		p := rng.IntN(m.procs())
		if m.finished(&s, p) {
			continue
		}
		stop := rng.IntN(9) // after that many changes
		if s.crashed != 0 {
			stop = never
		}
		owner := s.procs[p].owner
		what, count, first := "g", uint8(0), uint8(0)
		if p < len(m.producers) {
			what = "p"
			first, count = m.batch(&s, p)
		} else {
			count = m.consumers[p-len(m.producers)]
		}
		if !q.call(t, what, owner, stop, count, first) {
			stop = never
		}
		if err := m.runOne(&s, p, stop); err != nil {
			t.Fatal(err)
		}
		if stop != never {
			repairBoth(t, rng, &m, &s, p, q)
		}
		if err := m.compare(&s, q); err != nil {
			t.Fatalf("%s, %+v: after %s by %d of %d from %d, which ends before change %d: %v", kind, m, what, owner, count, first, stop, err)
		}
	}
	q.end(t)
}

// repairBoth recovers a process that was stopped. The recovery itself may be stopped too, and is then repeated.
func repairBoth(t *testing.T, rng *rand.Rand, m *model, s *modelState, p int, q *queue) {
	t.Helper()
	owner, stop := s.procs[p].owner, rng.IntN(4)
	*s = m.kill(*s, p)
	if q.call(t, "r", owner, stop, 0, 0) {
		if err := m.repair(s, stop); err != nil {
			t.Fatal(err)
		}
		if err := m.compare(s, q); err != nil {
			t.Fatalf("%s, %+v: after %d changes of a recovery: %v", q.kind, m, stop, err)
		}
		s.host = modelRecovery{pc: scan, owner: owner, restarted: true}
		q.call(t, "r", owner, never, 0, 0)
	}
	if err := m.repair(s, never); err != nil {
		t.Fatal(err)
	}
}

// queue is the memory of the program's queue after the last call.
type queue struct {
	kind       string
	size       int
	in         io.WriteCloser
	out        *bufio.Reader
	cmd        *exec.Cmd
	tail, head uint64
	words      [maxModelCells]word
	values     [maxModelCells]uint8
}

func startQueue(t *testing.T, program, kind string, size int) *queue {
	t.Helper()
	q := &queue{kind: kind, size: size, cmd: exec.Command(program, kind, strconv.Itoa(size))}
	var err error
	if q.in, err = q.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := q.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	q.out = bufio.NewReader(out)
	if err := q.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.cmd.Process.Kill() })
	return q
}

// call makes a call of the program, which ends before its change number stop, counted from 0, and reports whether it
// got there.
func (q *queue) call(t *testing.T, what string, owner uint8, stop int, count, first uint8) bool {
	t.Helper()
	if _, err := fmt.Fprintln(q.in, what, owner, stop, count, first); err != nil {
		t.Fatal(err)
	}
	var stopped int
	if _, err := fmt.Fscan(q.out, &stopped, &q.tail, &q.head); err != nil {
		t.Fatalf("the answer of the program: %v", err)
	}
	for i := range q.size {
		var w uint64
		if _, err := fmt.Fscan(q.out, &w, &q.values[i]); err != nil {
			t.Fatalf("cell %d in the answer of the program: %v", i, err)
		}
		q.words[i] = word(w)
		if q.kind == "bytes" {
			q.words[i] = wordOfBytes(w)
		}
	}
	return stopped == 1
}

func (q *queue) end(t *testing.T) {
	t.Helper()
	_ = q.in.Close()
	if err := q.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// runOne runs one put or get of the model to its end, or until it has made so many changes.
func (m *model) runOne(s *modelState, p, changes int) error {
	step := m.stepConsumer
	if p < len(m.producers) {
		step = m.stepProducer
	}
	voided := false // then the operation starts again
	for changes > 0 {
		pc, before := s.procs[p].pc, *s
		if err := step(s, p); err != nil {
			return err
		}
		if s.changedSince(&before) {
			changes--
		}
		voided = voided || pc == voidFree
		if s.procs[p].pc != loadIndex {
			continue
		}
		if !voided {
			return nil
		}
		voided = false
	}
	return nil
}

// repair runs the recovery of the model to its end, or until it has made so many changes.
func (m *model) repair(s *modelState, changes int) error {
	for s.host.pc != idle && changes > 0 {
		before := *s
		if err := m.stepHost(s); err != nil {
			return err
		}
		if s.changedSince(&before) {
			changes--
		}
	}
	return nil
}

// changedSince reports whether an index or a word is another one than before.
func (s *modelState) changedSince(before *modelState) bool {
	return s.tail != before.tail || s.head != before.head || s.cells != before.cells
}

func (m *model) compare(s *modelState, q *queue) error {
	if uint64(s.tail) != q.tail || uint64(s.head) != q.head {
		return fmt.Errorf("model has tail %d, head %d, code %d, %d", s.tail, s.head, q.tail, q.head)
	}
	for i := range m.size {
		if q.words[i] != s.cells[i] {
			return fmt.Errorf("cell %d: model has %x, code %x", i, s.cells[i], q.words[i])
		}
		if s.cells[i].state() == hostabi.RingReady && q.values[i] != s.values[i] {
			return fmt.Errorf("cell %d: model has message %d, code %d", i, s.values[i], q.values[i])
		}
	}
	return nil
}
