package ring

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// stepLimit is how long one call may take while somebody writes nonsense into the ring: longer means that it hangs.
const stepLimit = 20 * time.Second

// guarded returns memory for a ring, and a function that fails the test if anything behind the ring was written.
func guarded(t testing.TB, g geometry) (*shm.Segment, func()) {
	t.Helper()
	seg, err := shm.Heap(g.total() + 2*hostabi.RingHeaderBytes)
	if err != nil {
		t.Fatal(err)
	}
	behind := seg.Bytes()[g.total():]
	for i := range behind {
		behind[i] = 0xA5
	}
	want := bytes.Clone(behind)
	return seg, func() {
		t.Helper()
		if !bytes.Equal(behind, want) {
			t.Fatal("something was written behind the ring")
		}
	}
}

// within fails the test if a call does not end.
func within(t testing.TB, what string, call func()) {
	t.Helper()
	watch := time.AfterFunc(stepLimit, func() { panic(what + " hangs") })
	defer watch.Stop()
	call()
}

// spoil takes an instruction of five bytes, a place and a value, off the script and carries it out.
func spoil(mem []byte, script []byte) []byte {
	at := int(binary.LittleEndian.Uint16(script)) % (len(mem) - 8)
	switch script[2] % 4 {
	case 0:
		mem[at] = script[3]
	case 1:
		binary.LittleEndian.PutUint64(mem[at&^7:], uint64(int64(int8(script[3]))))
	case 2: // a counter moves a little
		p := mem[at&^7:]
		binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(p)+uint64(int64(int8(script[3]))))
	case 3: // one of the words that matter
		words := []int{8, 16, 128, 128, 256, 256, 384, 512, 640, 4096, 4128, 4160}
		p := mem[words[int(script[0])%len(words)]:]
		binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(p)^uint64(script[3])<<(script[4]%57))
	}
	return script[5:]
}

func FuzzMessagesHeader(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 0, 3, 0xff, 40, 9, 9, 9, 9, 9, 4, 0, 3, 0xff, 0, 0, 0, 1, 0x80, 0})
	f.Add([]byte{0x80, 0, 2, 9, 0, 0, 1, 2, 0xf7, 0, 0x80, 2, 0, 1, 1, 0x80, 1, 1, 0xff, 1})
	f.Fuzz(func(t *testing.T, script []byte) {
		g := messagesGeometry(4)
		seg, check := guarded(t, g)
		format(seg, g, nil)
		out, in := newMessages(seg, g), newMessages(seg, g)
		ms := make([]hostabi.Message, 6)
		for len(script) >= 5 {
			op := script[4]
			script = spoil(seg.Bytes()[:g.total()], script)
			within(t, "a call on a ring of messages", func() {
				if n := out.Put(ms[:op%7]); n < 0 || n > int(op%7) || n > 4 {
					t.Fatalf("Put of %d = %d", op%7, n)
				}
				if n := in.Get(ms[:op/7%7]); n < 0 || n > int(op/7%7) || n > 4 {
					t.Fatalf("Get of %d = %d", op/7%7, n)
				}
				in.Wait(time.Duration(op%2) * time.Microsecond)
				out.WaitRoom(time.Duration(op/2%2) * time.Microsecond)
				if n := out.Len(); n < 0 || n > 4 {
					t.Fatalf("Len() = %d of 4 cells", n)
				}
				in.Nudge()
			})
			if got, err := inspect(seg.Bytes(), hostabi.RingMessages); err == nil && got != g && got.total() > seg.Size() {
				t.Fatalf("a header says %+v in %d bytes", got, seg.Size())
			}
		}
		check()
	})
}

func FuzzQueueCells(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{2, 0, 3, 0xff, 40, 9, 9, 9, 9, 9, 9, 0, 3, 0x21, 20, 0, 0x10, 1, 0x80, 0})
	f.Add([]byte{9, 0, 3, 1, 20, 10, 0, 3, 4, 12, 11, 0, 3, 0xff, 24, 9, 0, 3, 1, 53})
	f.Fuzz(func(t *testing.T, script []byte) {
		g := queueGeometry(4, 16)
		seg, check := guarded(t, g)
		format(seg, g, func(seg *shm.Segment) { clearCells(seg, g) })
		q := newQueue(seg, g)
		put, get := q.As(1), q.As(2)
		items, got := Items(4, 16), Items(4, 16)
		for i := range items {
			items[i].Payload = items[i].Payload[:16]
		}
		for len(script) >= 5 {
			op := script[4]
			script = spoil(seg.Bytes()[:g.total()], script)
			within(t, "a call on a queue", func() {
				_ = put.PutMany(items[:op%5], time.Duration(op%2)*time.Microsecond)
				n, _ := get.GetMany(got[:op/5%5], time.Duration(op/2%2)*time.Microsecond)
				if n < 0 || n > int(op/5%5) {
					t.Fatalf("GetMany of %d = %d", op/5%5, n)
				}
				for i := range got[:n] {
					if len(got[i].Payload) > 16 {
						t.Fatalf("a message has %d bytes", len(got[i].Payload))
					}
				}
				if op%3 == 0 {
					q.Recover(uint16(op%4), func(item Item) {
						if len(item.Payload) > 16 {
							t.Fatalf("a lost message has %d bytes", len(item.Payload))
						}
					})
				}
			})
		}
		check()
	})
}

// FuzzInspect feeds whole headers: whatever is accepted lies within the file.
func FuzzInspect(f *testing.F) {
	for _, g := range []geometry{messagesGeometry(2), queueGeometry(2, 16), queueGeometry(1<<20, 1<<20)} {
		mem := make([]byte, hostabi.RingHeaderBytes)
		h := (*hostabi.RingHeader)(headerPointer(mem))
		h.Magic, h.Version, h.Kind = hostabi.RingMagic, hostabi.RingVersion, g.kind
		h.Cells, h.CellBytes, h.Payload = uint32(g.cells), uint32(g.cellBytes), uint32(g.payload)
		h.CellsAt, h.Total = hostabi.RingHeaderBytes, uint64(g.total())
		f.Add(mem[:48], uint16(1))
	}
	f.Fuzz(func(t *testing.T, header []byte, pages uint16) {
		seg, err := shm.Heap(hostabi.RingHeaderBytes * (1 + int(pages)%8))
		if err != nil {
			t.Fatal(err)
		}
		copy(seg.Bytes(), header)
		for _, kind := range []uint32{hostabi.RingMessages, hostabi.RingQueue} {
			g, err := inspect(seg.Bytes(), kind)
			if err == nil && (g.total() > seg.Size() || g.check() != nil || g.kind != kind) {
				t.Errorf("accepted %+v in %d bytes", g, seg.Size())
			}
		}
	})
}

func TestMessages_PeerThatLiesAboutItsPosition(t *testing.T) {
	for _, lie := range []uint64{5, 1 << 40, ^uint64(0), 1 << 63, 0} {
		out, in := heapMessages(t, 4)
		ms := make([]hostabi.Message, 8)
		if n := out.Put(ms[:3]); n != 3 {
			t.Fatalf("Put = %d", n)
		}
		out.h.head.Store(lie) // ahead of what was put, or behind
		if n := out.Put(ms); n > 4 {
			t.Errorf("head %d: Put = %d into 4 cells", lie, n)
		}
		out.h.tail.Store(lie)
		if n := in.Get(ms); n > 4 {
			t.Errorf("tail %d: Get = %d from 4 cells", lie, n)
		}
		if n := in.Len(); n < 0 || n > 4 {
			t.Errorf("Len() = %d", n)
		}
	}
}

func TestMessages_PeerThatOpensTheRingAgainAfterShut(t *testing.T) {
	out, _ := heapMessages(t, 4)
	out.Shut()
	out.h.closed.Store(0)
	if n := out.Put(make([]hostabi.Message, 1)); n != 0 || !out.IsShut() {
		t.Errorf("Put = %d, shut %v after the peer cleared the flag", n, out.IsShut())
	}
}
