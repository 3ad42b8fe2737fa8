package spawn

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi/native"
)

// maxQueuedFrames is how many frames may wait for a plugin that does not read.
const maxQueuedFrames = 1024

// errWireFull: the plugin has not read its wire for a long time.
var errWireFull = errors.New("it does not read its wire")

// Wire is the host's end of the socket that carries files. Frames are sent in order by a separate goroutine, so
// that no caller waits for a plugin that does not read.
type Wire struct {
	socket *shm.Socket

	mu     sync.Mutex
	queue  chan datagram // not sent yet; closed with mu held
	closed bool

	running sync.WaitGroup
	eof     chan struct{} // closed when nothing more is received
}

type datagram struct {
	doc   []byte
	files []int // the wire's own
}

// newWire returns the host's end, and the plugin's.
func newWire() (*Wire, *os.File, error) {
	socket, theirs, err := shm.Socketpair()
	if err != nil {
		return nil, nil, fmt.Errorf("wire: %w", err)
	}
	return &Wire{socket: socket, queue: make(chan datagram, maxQueuedFrames), eof: make(chan struct{})}, theirs, nil
}

// run starts sending, and receiving: handle is called with each frame and owns its files; broken once, when the
// plugin has broken the protocol or does not read. Neither is called after close.
func (w *Wire) run(handle func(f *native.Frame, files []*os.File), broken func(error)) {
	w.running.Go(func() {
		if err := w.sendAll(); err != nil {
			broken(err)
		}
	})
	w.running.Go(func() {
		defer close(w.eof)
		w.receiveAll(handle, broken)
	})
}

// Send queues a frame with copies of files. Any goroutine; it does not wait.
func (w *Wire) Send(f native.Frame, files ...int) error {
	doc, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("frame: %w", err)
	}
	if len(doc) > native.MaxFrame {
		return fmt.Errorf("frame of %d bytes, at most %d", len(doc), native.MaxFrame)
	}
	d := datagram{doc: doc}
	for _, fd := range files {
		own, err := shm.Dup(fd)
		if err != nil {
			return errors.Join(fmt.Errorf("frame: file %d: %w", fd, err), d.close())
		}
		d.files = append(d.files, own)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errors.Join(os.ErrClosed, d.close())
	}
	select {
	case w.queue <- d:
		return nil
	default:
		return errors.Join(errWireFull, d.close())
	}
}

// LastFrames waits, for a bounded time, until everything that a dead process had sent has been handled.
func (w *Wire) LastFrames() {
	select {
	case <-w.eof:
	case <-time.After(time.Second): // another process has inherited its end
	}
}

func (w *Wire) sendAll() error {
	for d := range w.queue {
		err := errors.Join(w.socket.Send(d.doc, d.files...), d.close())
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errWireFull
		}
		if err != nil {
			return nil // the plugin is gone: its pidfd says so
		}
	}
	return nil
}

func (w *Wire) receiveAll(handle func(f *native.Frame, files []*os.File), broken func(error)) {
	buf := make([]byte, native.MaxFrame)
	for {
		n, files, err := w.socket.Receive(buf)
		switch {
		case errors.Is(err, shm.ErrTooLarge), errors.Is(err, shm.ErrEmpty):
			broken(fmt.Errorf("a frame on its wire: %w", err))
			return
		case err != nil:
			return // the end of one of the two
		}
		f, err := readFrame(buf[:n])
		if err != nil {
			_ = CloseFiles(files)
			broken(err)
			return
		}
		handle(f, files)
	}
}

// readFrame decodes a frame of the plugin.
func readFrame(doc []byte) (*native.Frame, error) {
	f := new(native.Frame)
	if err := json.Unmarshal(doc, f); err != nil {
		return nil, fmt.Errorf("a frame on its wire: %w", err)
	}
	return f, nil
}

// isClosed reports whether this end is closed.
func (w *Wire) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// close ends the connection and waits for the goroutines.
func (w *Wire) close() {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return
	}
	w.closed = true
	close(w.queue)
	w.mu.Unlock()
	_ = w.socket.Close()
	w.running.Wait()
	for d := range w.queue {
		_ = d.close()
	}
}

func (d *datagram) close() error {
	var errs []error
	for _, fd := range d.files {
		errs = append(errs, unix.Close(fd))
	}
	d.files = nil
	return errors.Join(errs...)
}

// CloseFiles closes the files that are not nil.
func CloseFiles(files []*os.File) error {
	var errs []error
	for _, f := range files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
