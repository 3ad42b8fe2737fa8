package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

// partingTime is how long the last words before an immediate end may take: their reader may have stopped.
const partingTime = 200 * time.Millisecond

// oneRequest is how long after the first signal others count as the same: timeout(1) signals its child and then the whole
// process group, so the child gets two.
const oneRequest = 100 * time.Millisecond

// errTerminated is the cause of a context that SIGTERM has ended: the run must end, and that is no failure.
var errTerminated = errors.New("asked to end (SIGTERM)")

// onSignals are a command's reactions to signals.
type onSignals struct {
	ending  func() string // says what the first request to end leads to; nil: saving
	parting func()        // last words before a second request ends the process
	hangup  func()        // called on SIGHUP in a process without a terminal; nil: the same as an interrupt
}

// untilAsked returns a context that Ctrl-C or SIGTERM ends, for commands that have nothing to save.
func untilAsked() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
}

// serve prints where a server listens, and closes it when Ctrl-C or SIGTERM comes; attached: also when standard input ends, with the program
// that started this one.
func (p *program) serve(server io.Closer, path string, attached bool) error {
	ctx, stop := untilAsked()
	defer stop()
	fmt.Fprintln(p.out, printable(path)) // a caller may ask for the end from here on
	if attached {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin) // whatever ends it; the process does not wait for it
			stop()
		}()
	}
	<-ctx.Done()
	return server.Close()
}

// interruptible returns a context that the first Ctrl-C ends, or another polite request to end. The second ends the process.
// The context's cause is errTerminated after SIGTERM, else errInterrupted.
func (p *program) interruptible(do onSignals) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	wanted := []os.Signal{os.Interrupt, syscall.SIGTERM}
	stopHangups := func() {}
	switch {
	case signal.Ignored(syscall.SIGHUP): // nohup
	case do.hangup != nil && !term.IsTerminal(int(os.Stdin.Fd())):
		stopHangups = onHangup(do.hangup)
	default: // its terminal has gone
		wanted = append(wanted, syscall.SIGHUP)
	}
	signal.Notify(signals, wanted...)
	go p.awaitRequests(signals, cancel, do)
	return ctx, func() {
		stopHangups()
		signal.Stop(signals)
		close(signals)
		cancel(nil)
	}
}

// terminate asks this process to end.
func terminate() { _ = syscall.Kill(os.Getpid(), syscall.SIGTERM) } // the process is there

// awaitRequests takes the first request to end, which ends the context, and the second, which ends the process.
func (p *program) awaitRequests(signals <-chan os.Signal, cancel context.CancelCauseFunc, do onSignals) {
	first, ok := <-signals
	if !ok {
		return
	}
	if p.screen == nil && isTerminal(p.err) {
		fmt.Fprintln(p.err) // leave the line with the terminal's ^C in it
	}
	why, again := errInterrupted, "Ctrl-C again to stop at once"
	if first == syscall.SIGTERM {
		why, again = errTerminated, "once more to stop at once"
	}
	what := saving
	if do.ending != nil {
		what = do.ending()
	}
	p.tell(slog.LevelWarn, "rlhost: ", "%v; %s (%s)", why, what, again)
	cancel(why)
	if !repeated(signals) {
		return
	}
	said := make(chan struct{})
	go func() {
		defer close(said)
		do.parting()
	}()
	select {
	case <-said:
	case <-time.After(partingTime):
	}
	os.Exit(exitInterrupted)
}

// repeated waits for another request to end. It returns false when signals is closed.
func repeated(signals <-chan os.Signal) bool {
	for first := time.Now(); ; {
		if _, ok := <-signals; !ok {
			return false
		}
		if time.Since(first) > oneRequest {
			return true
		}
	}
}

// onHangup calls fn for each SIGHUP, one after the other, until the function that it returns is called.
func onHangup(fn func()) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for range hangups {
			fn()
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
	}
}
