package member

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// A frame is read as it was written; any other bytes are an error, and nothing beyond them is read.
func FuzzFrame_ReadsWhatIsWritten(f *testing.F) {
	some := []hostabi.Message{{Signal: 1, Kind: 2, T: 3, Split: 4, PolicyVersion: 5, Inline: [2]uint64{6, 7}}, {Signal: 2}}
	f.Add(append(appendFrame(nil, some, true, 0), "block"...))
	f.Add(appendFrame(nil, some, false, time.Second))
	f.Add([]byte{255, 1, 0, 0, 0, 0, 0, 0})
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		messages, block, took, err := parseFrame(b)
		if err != nil {
			return
		}
		again, rest, took2, err := parseFrame(append(appendFrame(nil, messages, block != nil, took), block...))
		if err != nil || !slices.Equal(again, messages) || !bytes.Equal(rest, block) || took2 != took || len(messages) > frameMost {
			t.Fatalf("%+v and %d bytes are read again as %+v and %d: %v", messages, len(block), again, len(rest), err)
		}
	})
}

func TestFrame_KeepsAMessage(t *testing.T) {
	want := hostabi.Message{Signal: 1, Kind: 2, T: 3, Split: 4, PolicyVersion: 5, Inline: [2]uint64{6, 7}}
	for took, wantTook := range map[time.Duration]time.Duration{
		0: 0, 3*time.Millisecond + 7: 3 * time.Millisecond, -time.Second: 0, 100 * time.Hour: math.MaxUint32 * time.Microsecond,
	} {
		got, block, gotTook, err := parseFrame(append(appendFrame(nil, []hostabi.Message{want}, true, took), "block"...))
		if err != nil || len(got) != 1 || got[0] != want || string(block) != "block" || gotTook != wantTook {
			t.Errorf("%+v, %q, %v: %v", got, block, gotTook, err)
		}
	}
}
