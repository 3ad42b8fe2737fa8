package recording

import (
	"errors"
	"os"
	"slices"
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

// Keep adds a message that passes on a signal, with its block. A block that its sender still writes is copied as it is at that
// moment, which may be later than when the message was sent. Where a block has been used again meanwhile the message is left out.
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
	switch {
	case err != nil || m.Handle == 0:
	case onLoan:
		if block = loaned(a, m.Handle); block == nil {
			return
		}
	default:
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

// loaned returns a copy of a block that its sender writes, or nil where the loan has ended meanwhile.
func loaned(a *arena.Arena, h hostabi.Handle) []byte {
	mem, err := a.Loaned(h)
	if err != nil {
		return nil
	}
	block := slices.Clone(mem)
	if _, err := a.Loaned(h); err != nil {
		return nil
	}
	return block
}

// Over is closed when nothing more can be kept, except at the limit on messages.
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
