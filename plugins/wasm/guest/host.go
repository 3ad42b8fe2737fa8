package guest

import "time"

// stepNanos is how far the virtual clock advances in one call of Step.
const stepNanos = int64(time.Millisecond)

// hostState is the state of one instance's host functions. All of it but the logging and the names of metrics belongs to snapshots.
type hostState struct {
	lines   lineLimit
	said    []byte // first line that the guest wrote to stderr in this call
	partial []byte // stdout and stderr up to the next end of line

	steps   uint64
	skipped int64    // virtual time that passed within steps
	entropy []uint64 // random streams: of each environment, and last of calls about none
	files   []OpenFile

	metrics map[string]string // their names, as reported and as shown
}

// OpenFile is a descriptor that a guest has opened below its folder of data. The zero value is free.
type OpenFile struct {
	Entry uint32 // place in the folder's entries, plus 1; 0: not open
	At    uint64 // where the next read begins
}

func (h *hostState) init() {
	h.said = make([]byte, 0, maxSaid)
	h.entropy = make([]uint64, 1)
}

// now returns the time of the virtual clock.
func (h *hostState) now() int64 { return int64(h.steps)*stepNanos + h.skipped }

// wait moves the virtual clock on by, or to, a number of nanoseconds; by at most a day, so that it cannot wrap.
func (h *hostState) wait(nanos uint64, absolute bool) {
	const day = 24 * 3600 * 1e9
	if absolute {
		now := uint64(h.now())
		if nanos <= now {
			return
		}
		nanos -= now
	}
	h.skipped += int64(min(nanos, day))
}
