package table

import (
	"math"
	"testing"
)

func TestBytes_AreWrittenAsTheyAreRead(t *testing.T) {
	for _, n := range []int64{0, 1, 1023, 1024, 3 << 20, 5 << 30, math.MaxInt64} {
		if got, err := ParseBytes(FormatBytes(n)); got != n || err != nil {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", FormatBytes(n), got, err, n)
		}
	}
	for _, s := range []string{"", "16", "16MB", "-1KiB", "1.5GiB", "9999999999999GiB", "KiB"} {
		if got, err := ParseBytes(s); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", s, got)
		}
	}
}
