package ring

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// stepLimit is how long one call may take while another writes garbage into the ring: longer means that it hangs.
const stepLimit = 20 * time.Second

// guarded returns memory for a ring, and a function that fails the test if anything after the ring was written.
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
