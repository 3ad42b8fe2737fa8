package pipeline

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

// ErrNoneSent is wrapped by Newest where no component has sent such a message yet.
var ErrNoneSent = errors.New("none has been sent")

// newestTries is how often Newest looks for a newer message when the block of the one that it found has been reused.
const newestTries = 8

// Newest calls read with the newest message of a payload, such as weights, and its block, which is claimed during the
// call; of several components that send such, with that of the newest policy version. It returns the error of read,
// ErrNoneSent, or ErrEnded after the run, whose end waits for read. Any goroutine.
func (p *Pipeline) Newest(payload string, read func(m *hostabi.Message, block []byte) error) error {
	leave, ok := p.life.visit()
	if !ok {
		return ErrEnded
	}
	defer leave()
	var err error
	for range newestTries {
		m, ok := p.now().newest(payload)
		if !ok {
			return fmt.Errorf("%s: %w", payload, ErrNoneSent)
		}
		if m.Handle == 0 {
			return read(&m, nil)
		}
		var lease arena.Lease
		if lease, err = p.arenas.Lease(m.Handle); err != nil {
			continue // there is a newer one by now
		}
		return errors.Join(read(&m, lease.Bytes()), lease.Release())
	}
	return fmt.Errorf("%s: %w", payload, err)
}

func (a *assembly) newest(payload string) (found hostabi.Message, ok bool) {
	for i := range a.members {
		x := &a.members[i]
		for _, port := range x.of.Manifest.Signals {
			if port.Payload != payload {
				continue
			}
			if m, sent := x.host.Signal(port.Name).Newest(); sent && (!ok || m.PolicyVersion > found.PolicyVersion) {
				found, ok = m, true
			}
		}
	}
	return found, ok
}
