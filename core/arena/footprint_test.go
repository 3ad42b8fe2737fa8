package arena

import (
	"math"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

func TestFootprint_IsAnArenasMemory(t *testing.T) {
	for _, size := range [][2]int{{1, 1}, {4, 64}, {3, 4097}, {100, 65536}} {
		a, err := New(Config{ID: 1, Name: "footprint", Blocks: size[0], BlockBytes: size[1]})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Footprint(size[0], size[1])
		if want := int64(len(a.words.Bytes()) + len(a.data.Bytes())); err != nil || got != want {
			t.Errorf("Footprint(%d, %d) = %d, %v, want %d", size[0], size[1], got, err, want)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFootprint_NeverWraps(t *testing.T) {
	for _, size := range [][2]int{{0, 1}, {1, 0}, {-1, 4096}, {hostabi.MaxBlock + 2, 1}, {1, math.MaxInt},
		{1, math.MaxInt - 2*4096}, {hostabi.MaxBlock + 1, math.MaxInt / (hostabi.MaxBlock + 1)}} {
		if got, err := Footprint(size[0], size[1]); err == nil {
			t.Errorf("Footprint(%d, %d) = %d, want an error", size[0], size[1], got)
		}
	}
}
