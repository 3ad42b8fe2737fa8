package ring

import (
	"errors"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// Pair is one end of two rings of messages, one for each direction; see link.Transport. Closing it closes both.
type Pair struct {
	Out *SPSC // this end puts
	In  *SPSC // this end gets
}

// Put is that of the ring Out.
func (p *Pair) Put(ms []hostabi.Message) int { return p.Out.Put(ms) }

// WaitRoom is that of the ring Out.
func (p *Pair) WaitRoom(d time.Duration) bool { return p.Out.WaitRoom(d) }

// Get is that of the ring In.
func (p *Pair) Get(dst []hostabi.Message) int { return p.In.Get(dst) }

// Len is that of the ring In.
func (p *Pair) Len() int { return p.In.Len() }

// Wait is that of the ring In.
func (p *Pair) Wait(d time.Duration) bool { return p.In.Wait(d) }

// Nudge is that of the ring In.
func (p *Pair) Nudge() { p.In.Nudge() }

// IsShut is that of the ring In.
func (p *Pair) IsShut() bool { return p.In.IsShut() }

// Close closes both rings.
func (p *Pair) Close() error { return errors.Join(p.In.Close(), p.Out.Close()) }
