package loop

import (
	"fmt"
	"sync/atomic"

	"github.com/rlhost/rlhost/hostabi"
)

// Receiver is where the messages of one component enter its loop. All methods may be called from any
// goroutine, also from a slot of the same loop.
type Receiver struct {
	loop *Loop
	name string
	// paused: number of Pause calls without their Resume, and heldUnit for each Hold without its Release. Written by
	// any goroutine, read by the loop before each message. The pauses may be below zero for a moment, when a Resume
	// overtakes its Pause.
	paused atomic.Int32
	closed bool // guarded by Loop.mu: Close was called

	backlog backlog // of the loop: data kept back while paused or held
	urgent  backlog // of the loop: control kept back while held
	ready   bool    // of the loop: in Loop.ready
}

// NewReceiver adds a component to the loop. The name appears in errors.
func (l *Loop) NewReceiver(name string) *Receiver {
	return &Receiver{loop: l, name: name}
}

// Name returns the name of the component.
func (r *Receiver) Name() string { return r.name }

// Loop returns the loop that runs the component's slots.
func (r *Receiver) Loop() *Loop { return r.loop }

// Post queues m on the data lane; the loop calls fn with it. fn's pointer lies in the loop's own buffer and is
// valid during the call only. Post never waits and never runs fn itself: bounding how much is posted is the
// caller's task. On a closed loop or receiver it does nothing. It allocates only while the lane grows.
func (r *Receiver) Post(fn func(*hostabi.Message), m hostabi.Message) { r.loop.post(r, Func(fn), &m) }

// Control is Post on the control lane.
func (r *Receiver) Control(fn func(*hostabi.Message), m hostabi.Message) {
	r.loop.postControl(r, Func(fn), &m)
}

// PostTo queues a copy of m for t on the data lane, and reports whether the loop took it; a closed loop or receiver
// does not. A message that was taken reaches either t.Deliver or t.Drop.
func (r *Receiver) PostTo(t Target, m *hostabi.Message) bool { return r.loop.post(r, t, m) }

// ControlTo is PostTo on the control lane.
func (r *Receiver) ControlTo(t Target, m *hostabi.Message) bool { return r.loop.postControl(r, t, m) }

// Pause keeps back the component's data from the next message on; a running slot runs to its end. Data waits in order,
// later posts too. The control lane and other components on the loop continue. Calls nest: each Pause needs a Resume.
func (r *Receiver) Pause() { r.paused.Add(1) }

// Resume undoes one Pause. After the last one the data kept back is handled first.
func (r *Receiver) Resume() {
	if r.paused.Add(-1) == 0 {
		r.loop.postControl(r, (*resumption)(r), &hostabi.Message{})
	}
}

// Paused reports whether a Pause is in force.
func (r *Receiver) Paused() bool { return r.Pauses() > 0 }

// Pauses returns how many Pauses are in force.
func (r *Receiver) Pauses() int {
	pauses, _ := r.counts()
	return max(pauses, 0)
}

// Fail ends the loop's Run with err, wrapped with the names of loop and component. It is for slots that cannot
// continue.
func (r *Receiver) Fail(err error) { r.loop.Fail(fmt.Errorf("component %q: %w", r.name, err)) }

// resumption is the control message that makes the loop run a receiver's backlog.
type resumption Receiver

func (p *resumption) Deliver(*hostabi.Message) {
	r := (*Receiver)(p)
	if r.ready || r.backlog.Len() == 0 {
		return
	}
	r.ready = true
	r.loop.ready = append(r.loop.ready, r)
}

func (p *resumption) Drop(*hostabi.Message) {}
