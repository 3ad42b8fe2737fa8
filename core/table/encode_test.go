package table

import (
	"testing"
	"time"
)

func TestDurations_AreWrittenAsTheyAreRead(t *testing.T) {
	for _, d := range []time.Duration{0, 200 * time.Microsecond, time.Second, 90 * time.Minute, 2 * time.Hour, 61 * time.Second, 10 * time.Minute} {
		if got, err := time.ParseDuration(formatDuration(d)); got != d || err != nil {
			t.Errorf("formatDuration(%v) = %q reads as %v, %v", d, formatDuration(d), got, err)
		}
	}
	if got := formatDuration(10 * time.Minute); got != "10m" {
		t.Errorf("formatDuration(10m) = %q", got)
	}
}
