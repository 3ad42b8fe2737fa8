package metrics

import (
	"math"
	"testing"
)

func TestEveryEpisode_HalvesAsAFileGrows(t *testing.T) {
	for size, want := range map[int64]uint64{0: 1, FullEpisodes - 1: 1, FullEpisodes: 2, FullEpisodes * 3 / 2: 4, 2 * FullEpisodes: 8, 1 << 60: 1 << 63} {
		if got := EveryEpisode(size); got != want {
			t.Errorf("of a file of %d bytes one of %d episodes is written, want %d", size, got, want)
		}
	}
}

// TestForecasts_AreWhatIsWritten compares the forecasts with files that grow as the runner makes them.
func TestForecasts_AreWhatIsWritten(t *testing.T) {
	const row, second = 30.0, 1.0
	for _, perSecond := range []float64{0.5, 100, 12345, 1e6} {
		for _, seconds := range []float64{1, 40, 600} {
			if got, want := EpisodesBytes(perSecond, row, seconds), grown(perSecond*seconds, row); math.Abs(got-want) > 0.001*want+2*row {
				t.Errorf("%g episodes/s for %g s: %g bytes, the file has %g", perSecond, seconds, got, want)
			}
			all := perSecond * row * seconds
			want := all
			if all > FullLog {
				full := math.Ceil(FullLog / (perSecond * row))
				want = min(all, FullLog+(seconds-full)*row/ThinPeriod.Seconds())
			}
			if got := LogBytes(perSecond, row, seconds); math.Abs(got-want) > 2*perSecond*second*row {
				t.Errorf("%g rows/s for %g s: %g bytes, want about %g", perSecond, seconds, got, want)
			}
		}
	}
	const trace = 3000.0
	full := math.Ceil(FullTraces / trace) // seconds
	for seconds, want := range map[float64]float64{10: 10 * trace, full + 600: FullTraces + 10*trace} {
		if got := TracesBytes(1, trace, seconds); math.Abs(got-want) > trace {
			t.Errorf("traces for %g s: %g bytes, want %g", seconds, got, want)
		}
	}
	if day := EpisodesBytes(2e6/60, 60, 86400); day < 400e6 || day > 600e6 {
		t.Errorf("a day of two million episodes a minute is %g bytes", day)
	}
}

// grown is the size of a file of episodes after so many of them.
func grown(episodes, row float64) float64 {
	size, ended := int64(0), uint64(0)
	for left := uint64(episodes); left > 0; {
		every := EveryEpisode(size)
		step := min(left, every-ended%every)
		if ended, left = ended+step, left-step; ended%every == 0 {
			size += int64(row)
		}
	}
	return float64(size)
}
