package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"github.com/rlhost/rlhost/plugins/runner"
)

// lasting is an output that a run outlives: once it has no reader any more, writes to it are dropped.
type lasting struct {
	out  io.Writer
	gone atomic.Bool
}

// Write writes to the output while there is a reader.
func (l *lasting) Write(p []byte) (int, error) {
	if l.gone.Load() {
		return len(p), nil
	}
	n, err := l.out.Write(p)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.EIO) { // a pipe, or a terminal, whose other end is closed
		l.gone.Store(true)
		return len(p), nil
	}
	return n, err
}

// outlasting returns the program with outputs whose readers may go without ending it: head, a pager, a terminal, a restarted
// journal.
func (p *program) outlasting() *program {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // unread: writes fail instead, and children have the default
	next := *p
	if _, screen := p.out.(*runner.Screen); !screen { // which is one itself
		next.out = &lasting{out: p.out}
	}
	if _, screen := p.err.(*runner.Screen); !screen {
		next.err = &lasting{out: p.err}
	}
	return &next
}

// isTerminal reports whether an output is itself a terminal, and not a screen.
func isTerminal(w io.Writer) bool {
	if l, ok := w.(*lasting); ok {
		w = l.out
	}
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
