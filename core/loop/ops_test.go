package loop_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// world is the target of a script: a loop, or the model of it.
type world interface {
	post(r, id int, do func(world))
	postControl(r, id int, do func(world))
	pause(r int)
	resume(r int)
	hold(r int)
	release(r int)
	close(r int)
	requeue(r, to int)
	run(step func(world))
	counts() []int // pauses and holds
	entries() []string
}

// journalled notes the fate of messages.
type journalled struct{ log []string }

func (j *journalled) handled(id int)    { j.log = append(j.log, fmt.Sprint("handled ", id)) }
func (j *journalled) dropped(id int)    { j.log = append(j.log, fmt.Sprint("dropped ", id)) }
func (j *journalled) entries() []string { return j.log }

// real is a loop.
type real struct {
	journalled
	loop      *loop.Loop
	script    *loop.Receiver
	receivers []*loop.Receiver
}

func newReal(receivers int) *real {
	w := &real{loop: loop.New("loop")}
	w.script = w.loop.NewReceiver("script")
	for i := range receivers {
		w.receivers = append(w.receivers, w.loop.NewReceiver(fmt.Sprint(i)))
	}
	return w
}

// letter is a message of a script.
type letter struct {
	w  *real
	id int
	do func(world)
}

func (l *letter) Deliver(*hostabi.Message) { l.w.handled(l.id); l.do(l.w) }
func (l *letter) Drop(*hostabi.Message)    { l.w.dropped(l.id) }

func (w *real) run(step func(world)) {
	w.script.ControlTo(&letter{w, -1, step}, &hostabi.Message{})
	synctest.Wait()
}

func (w *real) post(r, id int, do func(world)) {
	w.receivers[r].PostTo(&letter{w, id, do}, &hostabi.Message{})
}

func (w *real) postControl(r, id int, do func(world)) {
	w.receivers[r].ControlTo(&letter{w, id, do}, &hostabi.Message{})
}

func (w *real) pause(r int)   { w.receivers[r].Pause() }
func (w *real) resume(r int)  { w.receivers[r].Resume() }
func (w *real) hold(r int)    { w.receivers[r].Hold() }
func (w *real) release(r int) { w.receivers[r].Release() }
func (w *real) close(r int)   { w.receivers[r].Close() }

func (w *real) requeue(r, to int) {
	w.receivers[r].Requeue(func(t loop.Target) *loop.Receiver {
		if _, is := t.(*letter); is {
			return w.receivers[to]
		}
		return nil
	})()
}

func (w *real) counts() (counts []int) {
	for _, r := range w.receivers {
		held := 0
		if r.Held() {
			held = 1
		}
		counts = append(counts, r.Pauses(), held)
	}
	return counts
}

// script reads decisions from bytes; after the end all are 0.
type script struct {
	bytes  []byte
	id     int
	paused []int
}

func (s *script) next(n int) int {
	if len(s.bytes) == 0 {
		return 0
	}
	b := int(s.bytes[0])
	s.bytes = s.bytes[1:]
	return b % n
}

// op is one decision, as something to do in either world. A message takes deeper decisions when it is handled.
func (s *script) op(depth int) func(world) {
	r := s.next(len(s.paused))
	switch kind := s.next(20); {
	case kind == 0:
		return func(w world) { w.pause(r) }
	case kind == 1 || kind == 2:
		return func(w world) { w.resume(r) }
	case kind == 3:
		return func(w world) { w.hold(r) }
	case kind == 4 || kind == 5:
		return func(w world) { w.release(r) }
	case kind == 6 && s.next(4) == 0:
		return func(w world) { w.close(r) }
	case kind == 7:
		to := s.next(len(s.paused))
		return func(w world) { w.requeue(r, to) }
	default:
		s.id++
		id, do := s.id, func(world) {}
		if depth > 0 && s.next(3) == 0 {
			do = s.op(depth - 1)
		}
		if kind < 14 {
			return func(w world) { w.postControl(r, id, do) }
		}
		return func(w world) { w.post(r, id, do) }
	}
}

// checkScript plays a script on a loop and on the model and compares their visible states after each step.
func checkScript(t *testing.T, bytes []byte) {
	s := &script{bytes: bytes}
	s.paused = make([]int, 1+s.next(4))
	r, m := newReal(len(s.paused)), newModel(len(s.paused))
	ended := make(chan error, 1)
	go func() { ended <- r.loop.Run(t.Context()) }()
	for steps := 0; len(s.bytes) > 0 && steps < 80 && !t.Failed(); steps++ {
		var ops []func(world)
		for range 1 + s.next(8) {
			ops = append(ops, s.op(3))
		}
		step := func(w world) {
			for _, op := range ops {
				op(w)
			}
		}
		r.run(step)
		m.run(step)
		if got, want := r.entries(), m.entries(); !slices.Equal(got, want) {
			t.Errorf("step %d:\n got %v\nwant %v", steps, got, want)
		}
		want := m.counts()
		for i := 1; i < len(want); i += 2 {
			want[i] = min(want[i], 1)
		}
		if got := r.counts(); !slices.Equal(got, want) {
			t.Errorf("step %d: pauses and holds %v, want %v", steps, got, want)
		}
	}
	r.loop.Stop()
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	r.loop.Close()
}

func TestLoop_BehavesLikeTheModel(t *testing.T) {
	scripts := 400
	if testing.Short() {
		scripts = 150
	}
	testkit.Scripts(t, scripts, 800, play)
}

// play plays a script in a bubble.
func play(t *testing.T, bytes []byte) {
	synctest.Test(t, func(t *testing.T) { checkScript(t, bytes) })
}

func FuzzLoopOps(f *testing.F) {
	f.Fuzz(func(t *testing.T, bytes []byte) {
		if len(bytes) > 2000 {
			return
		}
		play(t, bytes)
	})
}
