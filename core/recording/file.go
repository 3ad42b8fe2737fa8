package recording

import (
	"errors"
	"os"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

// MaxFile bounds a File, in bytes.
const MaxFile = 1 << 30

// File keeps messages as they pass, until it is full. A nil File keeps nothing. Any goroutine.
type File struct {
	file  *os.File
	to    *Writer
	limit uint64
	ended chan struct{}

	mu   sync.Mutex // guards what follows
	kept uint64
	err  error
}

// Create makes a file, which must not be there, for at most limit messages; 0 is any number.
func Create(path string, limit uint64) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	to, err := NewWriter(f, MaxFile)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &File{file: f, to: to, limit: limit, ended: make(chan struct{})}, nil
}

// Keep adds a message that passes on a signal. Its block is left out where its sender still writes it; where it has been used again
// meanwhile, so is the message.
func (f *File) Keep(signal, payload string, onLoan bool, m *hostabi.Message, arenas *arena.Set) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || f.limit > 0 && f.kept == f.limit {
		return
	}
	var block []byte
	a, err := arenas.Of(m.Handle)
	if err == nil && m.Handle != 0 && !onLoan {
		lease, err := a.Lease(m.Handle)
		if err != nil {
			return
		}
		defer lease.Release() // this lease has no other user
		block = lease.Bytes()
	}
	if f.err = f.to.Write(signal, payload, m, block, a); f.err != nil {
		close(f.ended)
		return
	}
	f.kept++
}

// Over is closed when nothing more can be kept, but for the limit on messages.
func (f *File) Over() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.ended
}

// Status returns how many messages are kept, how many bytes they have, and why no more can be: ErrFull, or why the file cannot be
// written.
func (f *File) Status() (kept uint64, bytes int64, err error) {
	if f == nil {
		return 0, 0, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.kept, MaxFile - f.to.left, f.err
}

// Close closes the file.
func (f *File) Close() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}
