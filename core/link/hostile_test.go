package link

import (
	"encoding/binary"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

// FuzzLink_PeerWritesAnything puts arbitrary messages of a plugin into its ring between the host's operations. It
// must end in a fault or in nothing, with every claim released.
func FuzzLink_PeerWritesAnything(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 1, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{3, 0, 0, 0, 0, 255, 1, 0, 0, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newPair(t, options{cells: 16, limits: map[int]int{0: 2}})
		h := p.commit()
		loan, err := p.blocks.Loan()
		if err != nil {
			t.Fatal(err)
		}
		for len(b) > 0 {
			p.host.send(t, 0, hostabi.Message{Handle: h})
			p.host.send(t, 1, hostabi.Message{Handle: loan.Handle(), T: uint32(b[0])})
			m := hostabi.Message{Ctl: uint64(b[0] % 8)}
			take := func(n int) []byte {
				x := make([]byte, 8)
				n = copy(x, b[:min(n, len(b))])
				b = b[n:]
				return x
			}
			m.Ctl ^= binary.LittleEndian.Uint64(take(1))
			m.Signal = binary.LittleEndian.Uint16(take(1))
			m.Slot = binary.LittleEndian.Uint16(take(2))
			m.T = binary.LittleEndian.Uint32(take(1))
			m.Handle = hostabi.Handle(binary.LittleEndian.Uint64(take(8)))
			if m.T%3 == 0 {
				m.Handle = loan.Handle()
			}
			p.toHost.Put([]hostabi.Message{m})
			p.host.Poll()
			p.host.turn()
		}
		if err := loan.Abort(); err != nil {
			t.Error(err)
		}
		p.release(h)
		p.close()
	})
}

func TestPeer_ThatNeverAnswersRunsIntoABound(t *testing.T) {
	p := newPair(t, options{})
	defer p.close()
	m := []hostabi.Message{{Signal: 1, Handle: 1}}
	for range maxAsked {
		m[0].T++
		p.toHost.Put(m)
		p.host.Poll()
	}
	if p.host.fault != nil || p.host.asked() != maxAsked {
		t.Fatalf("%d asked, fault %v", p.host.asked(), p.host.fault)
	}
	p.toHost.Put(m)
	p.host.Poll()
	if p.host.fault == nil {
		t.Error("no fault")
	}
}
