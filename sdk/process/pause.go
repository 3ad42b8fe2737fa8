package process

import (
	"errors"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi/native"
)

// errResumed ends a Pause that the host has cancelled.
var errResumed = errors.New("resumed before it was idle")

// pause answers when the component has paused.
func (s *server) pause(q native.Pausing) (native.Empty, error) {
	none := native.Empty{}
	x, err := s.running()
	if err != nil {
		return none, err
	}
	rested, resumed := make(chan struct{}), make(chan struct{})
	err = x.do(func() error {
		switch {
		case q.Number != 0 && q.Number <= x.resumedTo:
			return refuse(native.CodeOrder, "%v", errResumed)
		case x.resumed != nil:
			return refuse(native.CodeOrder, "it is paused already")
		}
		x.resumed = resumed
		if p, ok := x.component.(component.Pauser); ok {
			p.Pause(func() { close(rested) })
		} else {
			close(rested) // between two slots
		}
		return nil
	})
	if err != nil {
		return none, err
	}
	select {
	case <-rested:
		x.stats.send()
		return none, nil
	case <-resumed:
		return none, refuse(native.CodeOrder, "%v", errResumed)
	case <-x.ended:
		return none, errors.New("the component has ended")
	}
}

// resume ends a Pause.
func (s *server) resume(q native.Pausing) (native.Empty, error) {
	x, err := s.running()
	if err != nil {
		return native.Empty{}, err
	}
	return native.Empty{}, x.do(func() error {
		x.resumedTo = max(x.resumedTo, q.Number)
		if x.resumed == nil {
			return nil
		}
		close(x.resumed)
		x.resumed = nil
		if p, ok := x.component.(component.Pauser); ok {
			p.Resume()
		}
		return nil
	})
}

// waiting returns the messages that the component has not begun. Their claims stay with the process until it stops.
func (s *server) waiting() (native.WaitingList, error) {
	list := native.WaitingList{Messages: []native.Waiting{}}
	x, err := s.running()
	if err != nil {
		return list, err
	}
	err = x.do(func() error {
		p, ok := x.component.(component.Pauser)
		if !ok {
			return nil
		}
		for _, w := range p.Waiting() {
			m := &w.Message
			list.Messages = append(list.Messages, native.Waiting{
				Slot: w.Slot, Sender: m.Sender, Kind: m.Kind, Handle: native.U64(m.Handle), T: m.T, Split: m.Split,
				PolicyVersion: m.PolicyVersion, Sequence: m.Sequence, Inline: [2]native.U64{native.U64(m.Inline[0]), native.U64(m.Inline[1])}, Claimed: w.Claimed,
			})
			if w.Claimed {
				x.handed = append(x.handed, m.Handle)
			}
		}
		return nil
	})
	return list, err
}

// releaseHanded releases the claims on the messages handed over.
func (x *instance) releaseHanded() error {
	var errs []error
	for _, h := range x.handed {
		errs = append(errs, x.arenas.Release(h))
	}
	x.handed = nil
	return errors.Join(errs...)
}
