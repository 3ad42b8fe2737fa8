package metrics

import "time"

// Bounds on the files of a run. Fast runs make thousands of rows of metrics a second, 100 GB a day: a log that is larger than FullLog gets a
// row each ThinPeriod, and 0.2 GB in that day. Where nothing is learned, millions of episodes end in a second: 2 MB of them, 170 GB a day. From
// FullEpisodes on each second one is written, and with every further half of that each fourth, eighth and so on: 0.5 GB after that day. A file
// of traces has one each second, and from FullTraces on one each TracesPeriod.
const (
	FullLog      = 64 << 20
	ThinPeriod   = time.Second
	FullEpisodes = 64 << 20
	FullTraces   = 64 << 20
	TracesPeriod = time.Minute
)

// EveryEpisode returns of how many episodes one is written to a file of so many bytes.
func EveryEpisode(size int64) uint64 {
	if size < FullEpisodes {
		return 1
	}
	return 2 << min((size-FullEpisodes)/(FullEpisodes/2), 62)
}

// LogBytes forecasts a log of metrics that takes rows of so many bytes for some seconds.
func LogBytes(rowsPerSecond, row, seconds float64) float64 {
	return thinnedBytes(rowsPerSecond, row, seconds, FullLog, ThinPeriod)
}

// TracesBytes forecasts a file of traces that takes some of so many bytes for some seconds.
func TracesBytes(tracesPerSecond, trace, seconds float64) float64 {
	return thinnedBytes(tracesPerSecond, trace, seconds, FullTraces, TracesPeriod)
}

// thinnedBytes forecasts a file that gets a row each period once it is full.
func thinnedBytes(rowsPerSecond, row, seconds, full float64, period time.Duration) float64 {
	all := rowsPerSecond * row * seconds
	if all <= full {
		return all
	}
	thinned := (seconds - full/(rowsPerSecond*row)) / period.Seconds() * row
	return full + min(thinned, all-full)
}

// EpisodesBytes forecasts the file of episodes, to which episodes of so many bytes come for some seconds.
func EpisodesBytes(episodesPerSecond, row, seconds float64) float64 {
	left, size := episodesPerSecond*row*seconds, 0.0
	for every, room := 1.0, float64(FullEpisodes); ; every, room = 2*every, FullEpisodes/2 {
		if left <= every*room {
			return size + left/every
		}
		left, size = left-every*room, size+room
	}
}
