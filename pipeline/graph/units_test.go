package graph

import (
	"math"
	"testing"
	"time"
)

func TestUnits_AreWrittenAsTheyAreRead(t *testing.T) {
	for _, n := range []int64{0, 1, 1023, 1024, 3 << 20, 5 << 30, math.MaxInt64} {
		if got, err := ParseBytes(formatBytes(n)); got != n || err != nil {
			t.Errorf("ParseBytes(%q) = %d, %v, want %d", formatBytes(n), got, err, n)
		}
	}
	for _, s := range []string{"", "16", "16MB", "-1KiB", "1.5GiB", "9999999999999GiB", "KiB"} {
		if got, err := ParseBytes(s); err == nil {
			t.Errorf("ParseBytes(%q) = %d, want an error", s, got)
		}
	}
	for _, d := range []time.Duration{0, 200 * time.Microsecond, time.Second, 90 * time.Minute, 2 * time.Hour, 61 * time.Second, 10 * time.Minute} {
		if got, err := time.ParseDuration(formatDuration(d)); got != d || err != nil {
			t.Errorf("formatDuration(%v) = %q reads as %v, %v", d, formatDuration(d), got, err)
		}
	}
	if got := formatDuration(10 * time.Minute); got != "10m" {
		t.Errorf("formatDuration(10m) = %q", got)
	}
}
