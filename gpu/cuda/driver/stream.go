package driver

import (
	"errors"
	"runtime"
)

// Priority is a stream's rank among streams of the device if both have work that is not under way yet.
type Priority int

// Priorities.
const (
	Low Priority = iota
	High
)

// Stream is work for the device that is done in the order in which it was submitted. Submitting does not wait for it, so an
// error of the work may come from any later call.
type Stream struct {
	device *Device
	handle uint64
	calls  *calls
}

// streamNonBlocking keeps a stream apart from the default one.
const streamNonBlocking = 1

// Stream makes a stream.
func (d *Device) Stream(p Priority) (*Stream, error) {
	s := &Stream{device: d, calls: newCalls(d.table)}
	c := s.calls
	if err := d.call(c, cuCtxGetStreamPriorityRange, c.result(0), c.result(1)); err != nil {
		return nil, err
	}
	priority := uintptr(uint32(c.results[p]))
	if err := d.call(c, cuStreamCreateWithPriority, c.result(0), streamNonBlocking, priority); err != nil {
		return nil, err
	}
	s.handle = c.results[0]
	return s, nil
}

func (s *Stream) call(f symbol, args ...uintptr) error { return s.device.call(s.calls, f, args...) }

// Close ends the stream; work that is under way continues.
func (s *Stream) Close() error { return s.call(cuStreamDestroy, uintptr(s.handle)) }

// Copy submits a copy of so many bytes between places that do not overlap.
func (s *Stream) Copy(to, from Address, bytes int) error {
	return s.call(cuMemcpyAsync, uintptr(to), uintptr(from), uintptr(bytes), uintptr(s.handle))
}

// Fill submits that so many bytes become b.
func (s *Stream) Fill(to Address, b byte, bytes int) error {
	return s.call(cuMemsetD8Async, uintptr(to), uintptr(b), uintptr(bytes), uintptr(s.handle))
}

// Launch submits a launch, with the arguments that it has now. It allocates nothing.
func (s *Stream) Launch(l *Launch) error {
	return s.call(cuLaunchKernel, uintptr(l.function.handle),
		uintptr(l.Grid.X), uintptr(max(l.Grid.Y, 1)), uintptr(max(l.Grid.Z, 1)),
		uintptr(l.Block.X), uintptr(max(l.Block.Y, 1)), uintptr(max(l.Block.Z, 1)),
		uintptr(l.Shared), uintptr(s.handle), l.parameters(), 0)
}

// Record has the event mark the work submitted until now.
func (s *Stream) Record(e *Event) error {
	return s.call(cuEventRecord, uintptr(e.handle), uintptr(s.handle))
}

// Wait makes later work wait for the work that the event marks.
func (s *Stream) Wait(e *Event) error {
	return s.call(cuStreamWaitEvent, uintptr(s.handle), uintptr(e.handle), 0)
}

// Synchronize blocks until all that was submitted is done.
func (s *Stream) Synchronize() error { return s.call(cuStreamSynchronize, uintptr(s.handle)) }

// Event marks a point in a stream, for other streams to wait for.
type Event struct {
	device *Device
	handle uint64
}

// eventDisableTiming has an event take no time.
const eventDisableTiming = 2

// Event makes an event that marks nothing.
func (d *Device) Event() (*Event, error) {
	c := newCalls(d.table)
	if err := d.call(c, cuEventCreate, c.result(0), eventDisableTiming); err != nil {
		return nil, err
	}
	return &Event{d, c.results[0]}, nil
}

// Close ends the event.
func (e *Event) Close() error {
	return e.device.call(newCalls(e.device.table), cuEventDestroy, uintptr(e.handle))
}

// Graph is work that was submitted once and can be submitted again as one, with the arguments that it had.
type Graph struct {
	device *Device
	handle uint64
}

// captureThread has a capture concern the calls of its thread alone.
const captureThread = 1

// Capture makes a graph of the work that fn submits to the stream, and to others by events; none of it is done. fn must not
// wait for another goroutine, nor for the device.
func (s *Stream) Capture(fn func() error) (*Graph, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := newCalls(s.device.table)
	if err := s.device.call(c, cuStreamBeginCapture, uintptr(s.handle), captureThread); err != nil {
		return nil, err
	}
	failed := fn()
	if err := s.device.call(c, cuStreamEndCapture, uintptr(s.handle), c.result(0)); err != nil {
		return nil, errors.Join(failed, err)
	}
	graph := c.results[0]
	if failed == nil {
		failed = s.device.call(c, cuGraphInstantiateWithFlags, c.result(0), uintptr(graph), 0)
	}
	g := &Graph{s.device, c.results[0]}
	if err := errors.Join(failed, s.device.call(c, cuGraphDestroy, uintptr(graph))); err != nil {
		return nil, err
	}
	return g, nil
}

// Replay submits the work of a graph.
func (s *Stream) Replay(g *Graph) error {
	return s.call(cuGraphLaunch, uintptr(g.handle), uintptr(s.handle))
}

// Close ends the graph, of which no launch may be under way.
func (g *Graph) Close() error {
	return g.device.call(newCalls(g.device.table), cuGraphExecDestroy, uintptr(g.handle))
}
