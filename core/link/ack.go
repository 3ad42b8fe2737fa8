package link

import (
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// Acknowledgements travel in every message. A separate one is sent only if no message will carry it soon: at once if the peer keeps a claim
// for it, else when the loop has nothing more to do, when half a window is unacknowledged, or when the loop has been busy for a while.

// finish counts a message of the peer's as finished with.
func (l *Link) finish(urgent bool) {
	n := l.finished.Add(1)
	if urgent {
		l.urgent.Store(n)
	}
}

// afterBatch sends acknowledgements that should not wait, once a batch has been delivered. The caller must hold rx.
func (l *Link) afterBatch() {
	told, finished := l.tellings(), l.finished.Load()
	if told == finished || told != l.agedSince {
		l.age, l.agedSince = 0, told
	}
	if told == finished {
		return
	}
	l.age++
	if l.urgent.Load() > told || finished-told >= ackBehind || l.age > ackAge && !l.pumping {
		l.tell()
	}
}

// Acknowledge acknowledges all messages that this end has finished with, so that the peer agrees with a state that is about to be saved.
func (l *Link) Acknowledge() { l.tell() }

// tellings returns the last number that was acknowledged to the peer.
func (l *Link) tellings() uint64 {
	l.tx.Lock()
	defer l.tx.Unlock()
	return l.told
}

// tell acknowledges the messages that this end has finished with, unless the peer knows. While something else has paused
// the component at the host, because its output is blocked, nothing is acknowledged: so the plugin's window fills.
func (l *Link) tell() (withheld bool) {
	l.tx.Lock()
	defer l.tx.Unlock()
	if l.finished.Load() == l.told {
		return false
	}
	own := 0
	if l.windows.paused {
		own = 1
	}
	if l.config.Host && l.config.Receiver.Pauses() > own {
		return true
	}
	l.transmit(&hostabi.Message{Slot: hostabi.LinkAck})
	return false
}

// wait waits for messages. With rx held, so that Stop waits for it.
func (l *Link) wait() {
	if l.stopped.Load() {
		return
	}
	if l.ended() {
		l.config.Receiver.Loop().DropSource(l)
		return
	}
	limit := longWait
	switch {
	case l.waiting():
		limit = shortWait
	case l.finished.Load() == l.tellings():
	case l.putOff() || l.tell():
		limit = shortWait
	}
	l.config.Transport.Wait(limit)
}

// putOff reports whether an acknowledgement may wait a little longer for a message that carries it. An idle loop at
// a plugin sends nothing more; at the host the component that will send may be on another loop.
func (l *Link) putOff() bool {
	if !l.config.Host && !l.pumping {
		return false
	}
	if told := l.tellings(); l.since.IsZero() || l.toldThen != told {
		l.since, l.toldThen = time.Now(), told
		return true
	}
	return time.Since(l.since) < shortWait
}

// waiting tries to put pending messages and reports whether any are left.
func (l *Link) waiting() bool {
	l.tx.Lock()
	defer l.tx.Unlock()
	l.flush()
	return l.queue.Len() > 0
}
