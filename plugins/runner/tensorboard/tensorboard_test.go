package tensorboard

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"
)

// TestWhole_AFileCutAnywhereIsReadableUpToItsLastRecord cuts a file at every byte, and flips each of its bytes.
func TestWhole_AFileCutAnywhereIsReadableUpToItsLastRecord(t *testing.T) {
	t.Parallel()
	file, ends := Header(time.Unix(1, 0)), []int{}
	ends = append(ends, len(file))
	for step := range uint64(3) {
		file = AppendEvent(file, time.Unix(2, 5000), step, []Scalar{{"charts/SPS", 1e6}, {"losses/x", math.NaN()}})
		ends = append(ends, len(file))
	}
	lastBefore := func(at int) int64 {
		last := 0
		for _, end := range ends {
			if end <= at {
				last = end
			}
		}
		return int64(last)
	}
	for cut := range len(file) + 1 {
		if n, err := Whole(bytes.NewReader(file[:cut])); err != nil || n != lastBefore(cut) {
			t.Fatalf("cut at %d: %d whole, want %d (%v)", cut, n, lastBefore(cut), err)
		}
	}
	for at := range file {
		damaged := bytes.Clone(file)
		damaged[at] ^= 4
		if n, err := Whole(bytes.NewReader(damaged)); err != nil || n != lastBefore(at) {
			t.Fatalf("byte %d flipped: %d whole, want %d (%v)", at, n, lastBefore(at), err)
		}
	}
}

// TestHeader_BytesEqualTensorFlows compares a record with one that TensorFlow has written.
func TestHeader_BytesEqualTensorFlows(t *testing.T) {
	t.Parallel()
	const want = "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a32"
	if got := hex.EncodeToString(Header(time.Unix(1, 0))); !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s…", got, want)
	}
}

func FuzzWhole(f *testing.F) {
	f.Add(AppendEvent(Header(time.Unix(1, 0)), time.Unix(2, 0), 3, []Scalar{{"a", 1}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := Whole(bytes.NewReader(b)); err != nil || n > int64(len(b)) {
			t.Errorf("%d of %d (%v)", n, len(b), err)
		}
	})
}
