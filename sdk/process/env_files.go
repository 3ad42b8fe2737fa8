package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/rlhost/rlhost/hostabi/native"
)

// patience is how long a message or a call waits for its file, which arrives on the wire.
const patience = 10 * time.Second

var errNoFile = errors.New("the host has not sent it")

// announced is a file of the wire and its announcement.
type announced struct {
	frame native.File
	file  *os.File
}

// Close closes the file.
func (a announced) Close() error { return a.file.Close() }

// inbox keeps what comes on the wire, by its number, until it is taken.
type inbox[T io.Closer] struct {
	what string // it keeps

	mu     sync.Mutex
	news   chan struct{} // closed and replaced at each arrival
	items  map[uint64]T
	closed bool
}

func newInbox[T io.Closer](what string) *inbox[T] {
	return &inbox[T]{what: what, news: make(chan struct{}), items: map[uint64]T{}}
}

// put becomes the owner of an item.
func (b *inbox[T]) put(number uint64, item T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = item.Close() // no call will take it
		return
	}
	if old, ok := b.items[number]; ok {
		_ = old.Close() // no call took it
	}
	b.items[number] = item
	close(b.news)
	b.news = make(chan struct{})
}

// take waits for an item, which the caller then owns.
func (b *inbox[T]) take(number uint64) (T, error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		b.mu.Lock()
		item, ok := b.items[number]
		delete(b.items, number)
		closed, news := b.closed, b.news
		b.mu.Unlock()
		switch {
		case ok:
			return item, nil
		case closed:
			return item, fmt.Errorf("%s %d: %w", b.what, number, os.ErrClosed)
		}
		select {
		case <-news:
		case <-timeout.C:
			return item, fmt.Errorf("%s %d: %w", b.what, number, errNoFile)
		}
	}
}

func (b *inbox[T]) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	for _, item := range b.items {
		_ = item.Close() // no call will take it
	}
	clear(b.items)
	close(b.news)
}
