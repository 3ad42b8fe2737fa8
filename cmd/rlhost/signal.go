package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"
)

// partingTime is how long the last words before an immediate end may take: whoever reads them may have stopped.
const partingTime = 200 * time.Millisecond

// oneRequest is how long after the first signal others count as the same: timeout(1) signals its child and then the whole
// process group, so the child gets two.
const oneRequest = 100 * time.Millisecond

// interruptible returns a context that the first Ctrl-C ends, or another polite request to end. The second ends the
// process, after parting has said what there is to say.
func (p *program) interruptible(parting func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	wanted := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		wanted = append(wanted, syscall.SIGHUP)
	}
	signal.Notify(signals, wanted...)
	go func() {
		if _, ok := <-signals; !ok {
			return
		}
		if p.screen == nil && p.err == os.Stderr && term.IsTerminal(int(os.Stderr.Fd())) {
			fmt.Fprintln(p.err) // leave the line with the terminal's ^C in it
		}
		p.tell(slog.LevelWarn, "rlhost: ", "interrupted; saving at the next dataset boundary (Ctrl-C again to stop at once)")
		cancel()
		if !again(signals) {
			return
		}
		said := make(chan struct{})
		go func() {
			defer close(said)
			parting()
		}()
		select {
		case <-said:
		case <-time.After(partingTime):
		}
		os.Exit(exitInterrupted)
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// again waits for another request to end. It returns false when nobody waits for one any more.
func again(signals <-chan os.Signal) bool {
	for first := time.Now(); ; {
		if _, ok := <-signals; !ok {
			return false
		}
		if time.Since(first) > oneRequest {
			return true
		}
	}
}
