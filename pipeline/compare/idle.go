package compare

import (
	"slices"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// Idle returns the runs in a folder that no process writes to and that have no checkpoint, the newest first; with keep above 0
// also all but the newest keep of each name, and with most above 0 the oldest, as long as all runs take more bytes than that.
func Idle(dir string, keep int, most int64) ([]*runs.Run, error) {
	list, err := List(dir)
	if err != nil {
		return nil, err
	}
	newer, idle, bytes := map[string]int{}, []*runs.Run{}, int64(0)
	for _, r := range slices.Backward(list) {
		run, err := runs.Open(dir, r.Dir)
		if err != nil {
			return nil, err
		}
		pid, err := run.Holder()
		if err != nil {
			return nil, err
		}
		newer[r.Info.Name]++
		if most > 0 {
			bytes += runs.Bytes(run.Dir)
		}
		if pid == 0 && (len(run.Checkpoints()) == 0 || keep > 0 && newer[r.Info.Name] > keep || most > 0 && bytes > most) {
			idle = append(idle, run)
		}
	}
	return idle, nil
}
