package process

import (
	"errors"
	"fmt"
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

// inbox keeps the files from the wire until they are taken.
type inbox struct {
	mu     sync.Mutex
	news   chan struct{} // closed and replaced at each arrival
	files  map[uint64]announced
	states map[uint64]*os.File
	closed bool
}

func newInbox() *inbox {
	return &inbox{news: make(chan struct{}), files: map[uint64]announced{}, states: map[uint64]*os.File{}}
}

// putFile and putState become the owner of a file.
func (b *inbox) putFile(f native.File, file *os.File) {
	b.put(func() *os.File {
		old := b.files[f.Number].file
		b.files[f.Number] = announced{f, file}
		return old
	}, file)
}

func (b *inbox) putState(s native.StateSize, file *os.File) {
	b.put(func() *os.File {
		old := b.states[s.Call]
		b.states[s.Call] = file
		return old
	}, file)
}

func (b *inbox) put(keep func() *os.File, file *os.File) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		_ = file.Close() // no call will take it
		return
	}
	if old := keep(); old != nil {
		_ = old.Close() // no call took it
	}
	close(b.news)
	b.news = make(chan struct{})
}

// takeFile and takeState wait for a file, which the caller then owns.
func (b *inbox) takeFile(number uint64) (got announced, err error) {
	err = b.wait(func() bool {
		var ok bool
		got, ok = b.files[number]
		delete(b.files, number)
		return ok
	})
	if err != nil {
		return got, fmt.Errorf("file %d: %w", number, err)
	}
	return got, nil
}

func (b *inbox) takeState(call uint64) (file *os.File, err error) {
	err = b.wait(func() bool {
		var ok bool
		file, ok = b.states[call]
		delete(b.states, call)
		return ok
	})
	if err != nil {
		return nil, fmt.Errorf("state %d: %w", call, err)
	}
	return file, nil
}

func (b *inbox) wait(take func() bool) error {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		b.mu.Lock()
		ok, closed, news := take(), b.closed, b.news
		b.mu.Unlock()
		if ok {
			return nil
		}
		if closed {
			return os.ErrClosed
		}
		select {
		case <-news:
		case <-timeout.C:
			return errNoFile
		}
	}
}

func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.closed = true
	for _, f := range b.files {
		_ = f.file.Close() // no call will take it
	}
	for _, f := range b.states {
		_ = f.Close() // no call will take it
	}
	clear(b.files)
	clear(b.states)
	close(b.news)
}
