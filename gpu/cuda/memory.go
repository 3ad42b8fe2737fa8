package cuda

import (
	"errors"
	"io"
	"slices"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/kernels"
)

// work is the work of one stream. The first error is kept, and nothing is submitted after it until it is taken.
type work struct {
	device *device
	stream *driver.Stream
	err    error
}

func newWork(d *device, p driver.Priority) (*work, error) {
	s, err := d.Stream(p)
	return &work{device: d, stream: s}, err
}

// fail keeps an error, if there is one and none before it.
func (w *work) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// take returns the first error and forgets it.
func (w *work) take() error {
	err := w.err
	w.err = nil
	return err
}

// launch submits a kernel over a grid.
func (w *work) launch(l *driver.Launch, grid driver.Dim) {
	if w.err == nil {
		l.Grid = grid
		w.err = w.stream.Launch(l)
	}
}

// fill submits that so many bytes become b.
func (w *work) fill(at kernels.Address, b byte, bytes int) {
	if w.err == nil {
		w.err = w.stream.Fill(at, b, bytes)
	}
}

// zero submits that memory becomes zero.
func (w *work) zero(at kernels.Address, bytes int) { w.fill(at, 0, bytes) }

// copy submits a copy.
func (w *work) copy(to, from kernels.Address, bytes int) {
	if w.err == nil {
		w.err = w.stream.Copy(to, from, bytes)
	}
}

// wait blocks until all that was submitted is done, after an error too: earlier work is under way.
func (w *work) wait() { w.fail(w.stream.Synchronize()) }

// owner makes launches and memory, which it closes together.
type owner struct {
	work *work
	made []io.Closer
}

// floats returns n elements of the device's memory, of 4 bytes, all zero.
func (o *owner) floats(n int) kernels.Address {
	bytes := 4 * max(n, 1)
	if o.work.err != nil {
		return 0
	}
	m, err := o.work.device.Alloc(bytes)
	if err != nil {
		o.work.fail(err)
		return 0
	}
	o.made = append(o.made, m)
	o.work.zero(m.Address, bytes)
	return m.Address
}

// call is a kernel with its arguments.
type call[T any] struct {
	*driver.Launch
	args *T
}

// prepare makes a call of a kernel.
func prepare[T any](o *owner, k kernels.Kernel[T]) call[T] {
	l, args, err := kernels.New(o.work.device.set, k)
	if err != nil {
		o.work.fail(err)
		return call[T]{args: new(T)}
	}
	o.made = append(o.made, l)
	return call[T]{l, args}
}

// close waits for the work and closes the owned objects, last first.
func (o *owner) close() error {
	err := o.work.stream.Synchronize()
	for _, m := range slices.Backward(o.made) {
		err = errors.Join(err, m.Close())
	}
	o.made = nil
	return err
}

// staged is memory of the host, which the device reaches, and as much of the device's own. Sections are taken in turn and have
// the same places in both. The host's memory belongs to the work that was submitted until that is done.
type staged struct {
	*work
	host   *driver.Pinned
	memory *driver.Memory
	used   int
}

// section is a part of staged memory.
type section struct{ at, bytes int }

// line is what sections are aligned to.
const line = 256

// begin forgets all sections.
func (s *staged) begin() { s.used = 0 }

// section takes the next bytes.
func (s *staged) section(bytes int) section {
	x := section{s.used, bytes}
	s.used += (bytes + line - 1) / line * line
	return x
}

// fit makes room for the sections that were taken, unless there was an error. Contents are lost if it is larger than before.
func (s *staged) fit() {
	if s.err != nil || s.host != nil && s.used <= len(s.host.Bytes) {
		return
	}
	bytes := max(s.used, line)
	if s.host != nil {
		bytes = max(bytes, s.used+s.used/4) // sizes that grow slowly are soon enough
	}
	s.wait()
	s.fail(s.close())
	if s.err != nil {
		return
	}
	host, err := s.device.Pinned(bytes)
	if err != nil {
		s.fail(err)
		return
	}
	memory, err := s.device.Alloc(bytes)
	if err != nil {
		s.fail(errors.Join(err, host.Close()))
		return
	}
	s.host, s.memory = host, memory
}

// bytes returns a section in memory of the host.
func (s *staged) bytes(x section) []byte { return s.host.Bytes[x.at : x.at+x.bytes : x.at+x.bytes] }

// address returns where a section is for kernels.
func (s *staged) address(x section) kernels.Address { return s.memory.Address + kernels.Address(x.at) }

// send submits a copy to the device of the sections from a place on.
func (s *staged) send(from int) {
	if n := s.used - from; n > 0 && s.err == nil {
		s.copy(s.memory.Address+kernels.Address(from), s.host.Address+kernels.Address(from), n)
	}
}

// fetch submits a copy to the host of all sections.
func (s *staged) fetch() {
	if s.used > 0 && s.err == nil {
		s.copy(s.host.Address, s.memory.Address, s.used)
	}
}

// close frees both memories, which no work under way may use.
func (s *staged) close() error {
	if s.host == nil {
		return nil
	}
	err := errors.Join(s.host.Close(), s.memory.Close())
	s.host, s.memory = nil, nil
	return err
}
