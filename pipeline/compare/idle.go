package compare

import (
	"slices"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// Idle returns the runs in a folder that no process writes to and that have no checkpoint, the newest first; with keep above 0
// also all but the newest keep of each name.
func Idle(dir string, keep int) ([]*runs.Run, error) {
	list, err := List(dir)
	if err != nil {
		return nil, err
	}
	newer, idle := map[string]int{}, []*runs.Run{}
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
		if pid == 0 && (len(run.Checkpoints()) == 0 || keep > 0 && newer[r.Info.Name] > keep) {
			idle = append(idle, run)
		}
	}
	return idle, nil
}
