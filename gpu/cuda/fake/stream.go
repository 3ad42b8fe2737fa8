package fake

import (
	"slices"
	"time"
)

// work is something that a stream does.
type work interface {
	// run does it. The driver is not locked.
	run(d *Driver)
}

// stream is work in the order in which it was submitted.
type stream struct {
	queue   []work
	capture *graph // that takes submitted work, instead of the queue
}

// event marks a place in a stream.
type event struct {
	recorded int    // how often it was submitted
	reached  int    // how often of these it was come to
	capture  *graph // that it was recorded in last
}

// reach is the work of coming to an event.
type reach struct {
	e      *event
	number int
}

func (r *reach) run(d *Driver) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.e.reached = max(r.e.reached, r.number)
}

// wait is the work of waiting for an event.
type wait struct {
	e      *event
	number int
}

func (*wait) run(*Driver) {}

// copied is a copy of bytes, whose places were checked.
type copied struct {
	to, from []byte
	at       [2]uint64 // addresses of both
}

func (c *copied) run(*Driver) { copy(c.to, c.from) }

// filled is a fill.
type filled struct {
	to []byte
	b  byte
}

func (f *filled) run(*Driver) {
	for i := range f.to {
		f.to[i] = f.b
	}
}

// graph is work that is submitted as one, in the order in which it was captured.
type graph struct {
	work    []work
	streams []*stream // that take part while it is captured
	invalid bool
}

func (g *graph) run(d *Driver) {
	for _, w := range g.work {
		w.run(d)
	}
}

// idleDelay is how long work that the host does not wait for is left undone: the host may be looking at memory that it writes.
const idleDelay = 50 * time.Microsecond

// submit gives a stream work. The caller has locked the driver.
func (d *Driver) submit(handle uint64, w work) int32 {
	s, ok := object[*stream](d, handle)
	if !ok {
		return invalidHandle
	}
	if s.capture != nil {
		s.capture.work = append(s.capture.work, w)
		return success
	}
	s.queue = append(s.queue, w)
	if !d.options.Lazy {
		d.later.Reset(idleDelay)
	}
	return success
}

// place returns n bytes that the device can reach, or nil.
func (d *Driver) place(address uint64, n int) []byte {
	b, err := d.memory.View(address, n)
	if err != nil {
		return nil
	}
	return b
}

func (d *Driver) copyMemory(to, from uint64, n int, stream uint64) int32 {
	if n == 0 {
		return success
	}
	w := &copied{d.place(to, n), d.place(from, n), [2]uint64{to, from}}
	if w.to == nil || w.from == nil {
		return invalidValue
	}
	return d.submit(stream, w)
}

func (d *Driver) fill(to uint64, b byte, n int, stream uint64) int32 {
	if n == 0 {
		return success
	}
	w := &filled{d.place(to, n), b}
	if w.to == nil {
		return invalidValue
	}
	return d.submit(stream, w)
}

// record has an event mark the work submitted to a stream.
func (d *Driver) record(handle, of uint64) int32 {
	e, ok := object[*event](d, handle)
	s, found := object[*stream](d, of)
	if !ok || !found {
		return invalidHandle
	}
	if e.capture = s.capture; s.capture != nil {
		return success // a graph is done in the order in which it was captured
	}
	e.recorded++
	return d.submit(of, &reach{e, e.recorded})
}

// waitFor makes a stream wait for the work that an event marks. A stream that waits for a captured event takes part in the capture.
func (d *Driver) waitFor(of, handle uint64) int32 {
	e, ok := object[*event](d, handle)
	s, found := object[*stream](d, of)
	if !ok || !found {
		return invalidHandle
	}
	if e.capture != nil {
		if s.capture == nil {
			s.capture = e.capture
			s.capture.streams = append(s.capture.streams, s)
		}
		return success
	}
	if s.capture != nil {
		s.capture.invalid = true
		return captureUnsupported
	}
	if e.recorded == 0 {
		return success
	}
	return d.submit(of, &wait{e, e.recorded})
}

func (d *Driver) beginCapture(handle uint64) int32 {
	s, ok := object[*stream](d, handle)
	if !ok {
		return invalidHandle
	}
	if s.capture != nil {
		return captureUnsupported
	}
	s.capture = &graph{streams: []*stream{s}}
	return success
}

func (d *Driver) endCapture(handle uint64) (uint64, int32) {
	s, ok := object[*stream](d, handle)
	if !ok || s.capture == nil {
		return 0, invalidHandle
	}
	g := s.capture
	for _, taking := range g.streams {
		taking.capture = nil
	}
	for _, o := range d.objects {
		if e, isEvent := o.(*event); isEvent && e.capture == g {
			e.capture = nil
		}
	}
	g.streams = nil
	if g.invalid {
		return 0, captureInvalidated
	}
	return d.add(g), success
}

// instantiate returns a handle under which a graph can be submitted, apart from the handle that describes it.
func (d *Driver) instantiate(handle uint64) (uint64, int32) {
	g, ok := object[*graph](d, handle)
	if !ok {
		return 0, invalidHandle
	}
	return d.add(&graph{work: slices.Clone(g.work)}), success
}

// next takes work that can be done now from any stream, or returns nil. The caller has locked the driver.
func (d *Driver) next() work {
	var able []*stream
	for _, handle := range d.handles() {
		s, ok := object[*stream](d, handle)
		if !ok || len(s.queue) == 0 {
			continue
		}
		if w, waits := s.queue[0].(*wait); waits && w.e.reached < w.number {
			continue
		}
		able = append(able, s)
	}
	if len(able) == 0 || d.sticky != success {
		return nil
	}
	s := able[d.order.IntN(len(able))]
	w := s.queue[0]
	s.queue = s.queue[1:]
	return w
}

// handles returns the handles of all objects in the order of their making, so that a seed always means the same.
func (d *Driver) handles() []uint64 {
	all := make([]uint64, 0, len(d.objects))
	for handle := range d.objects {
		all = append(all, handle)
	}
	slices.Sort(all)
	return all
}

// runUntil does work of any stream until done says that it is enough, or there is none.
func (d *Driver) runUntil(done func() bool) {
	d.running.Lock()
	defer d.running.Unlock()
	for {
		d.mu.Lock()
		d.checkMapped()
		var w work
		if !done() {
			w = d.next()
		}
		d.mu.Unlock()
		if w == nil {
			return
		}
		w.run(d)
	}
}

// runAll does all work that there is.
func (d *Driver) runAll() { d.runUntil(func() bool { return false }) }

// synchronize returns when a stream has nothing left to do.
func (d *Driver) synchronize(handle uint64) (result int32) {
	d.runUntil(func() bool {
		s, ok := object[*stream](d, handle)
		switch {
		case !ok:
			result = invalidHandle
		case s.capture != nil:
			s.capture.invalid = true
			result = captureUnsupported
		}
		return result != success || len(s.queue) == 0
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sticky != success {
		return d.sticky
	}
	return result
}
