package proxy

import (
	"errors"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/link"
)

const (
	quiesceLimit = 10 * time.Second // for components that work on blocks that a dead process had on loan
	quiesceStep  = time.Millisecond
)

// recover cleans up after a dead process: its messages count, its blocks are taken back. It returns the messages that it had not finished with.
func (x *proxy) recover(l *session, why string) []link.Pending {
	x.setState(component.ProcessRestarting)
	l.wire.LastFrames()
	l.requests.lose()
	l.link.Stop()
	fault := l.link.Drain()
	x.quiesce(l)
	x.pauseReceiver()
	stats := l.link.Stats()
	again := l.link.Unfinished()
	l.unregister()
	swept, held, err := x.sweep(l)
	again = x.dropStale(again)
	x.shared.purge()
	lost := x.loss(l, stats.Acked, held)
	x.shared.meters.lost.Add(lost)
	attrs := []any{"process", l.describeEnd(), "held_blocks", swept.Write + swept.Live + swept.Zombie,
		"again_messages", len(again), "lost_messages", lost}
	if swept.Mended > 0 {
		attrs = append(attrs, "mended_blocks", swept.Mended)
	}
	if why != "" {
		attrs = append(attrs, "why", why)
	}
	if err := errors.Join(fault, err); err != nil {
		attrs = append(attrs, "err", err)
	}
	x.shared.h.Log.Error("plugin process ended", attrs...)
	l.release()
	x.shared.meters.deaths.Inc()
	return again
}

// sweep takes back the blocks of a dead process. held counts the blocks of other arenas that it read; blocks of its
// own arenas may be on messages that have arrived.
func (x *proxy) sweep(l *session) (swept arena.Swept, held int, err error) {
	x.shared.h.Arenas.Each(func(a *arena.Arena) {
		if !x.shared.owns(a.ID()) {
			s, _ := a.Sweep(l.holder) // an error here occurs again below
			held += s.Live + s.Zombie
		}
	})
	if swept, err = x.shared.h.Arenas.Sweep(l.holder); err == nil {
		l.holder = 0
	}
	swept.Live += held
	return swept, held, err
}

// quiesce waits for components of the host that work on blocks that the process had on loan: the blocks must not be
// anybody else's before.
func (x *proxy) quiesce(l *session) {
	for end := time.Now().Add(quiesceLimit); l.asking() > 0 && time.Now().Before(end); {
		select {
		case <-x.shared.running.Done():
			return
		case <-time.After(quiesceStep):
		}
	}
}

// pauseReceiver keeps messages in the connections while there is no process.
func (x *proxy) pauseReceiver() {
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	if !x.paused {
		x.paused = true
		x.shared.h.Receiver.Pause()
	}
}

// resumeReceiver ends pauseReceiver.
func (x *proxy) resumeReceiver() {
	x.shared.mu.Lock()
	paused := x.paused
	x.paused = false
	x.shared.mu.Unlock()
	if paused {
		x.shared.h.Receiver.Resume()
	}
}

// dropStale drops messages about blocks on loan whose loan has ended: answers to the dead process.
func (x *proxy) dropStale(list []link.Pending) []link.Pending {
	kept := list[:0]
	for _, p := range list {
		if p.Message.Handle != 0 && !p.Claimed && !x.shared.onLoan(p.Message.Handle) {
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// loss is how many messages are lost with a process: the messages finished since its saved state, if the successor
// continues from one; else the messages whose blocks it still held.
func (x *proxy) loss(l *session, finished uint64, held int) uint64 {
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	if s := x.saved; s != nil {
		if s.from == l {
			return finished - min(s.finished, finished)
		}
		return finished
	}
	return uint64(held)
}

// keepAgain keeps a process's unfinished messages, ahead of later ones, for Waiting: there will be no other process.
func (x *proxy) keepAgain(list []link.Pending) {
	x.shared.mu.Lock()
	defer x.shared.mu.Unlock()
	x.waiting = append(list, x.waiting...)
}

// releaseUndelivered releases the claims of messages that will not be delivered, and returns their number.
func (x *proxy) releaseUndelivered(list []link.Pending) uint64 {
	x.shared.mu.Lock()
	list = append(list, x.waiting...)
	x.waiting = nil
	x.shared.mu.Unlock()
	for i := range list {
		if list[i].Claimed {
			x.shared.release(list[i].Message.Handle)
		}
	}
	return uint64(len(list))
}
