package runner

import (
	"fmt"
	"time"

	"github.com/rlhost/rlhost/core/component"
)

// saved is the small part of a runner's state.
type saved struct {
	Window  WindowState   `json:"window"`
	Wall    time.Duration `json:"wall_ns"`
	Made    uint64        `json:"env_steps_made"`
	Trained uint64        `json:"env_steps"`
	Version uint64        `json:"policy_version"`
	// Marks are where the logs end, by name. Runs of format 0 have the sizes of two files instead.
	Marks         map[string]int64 `json:"marks"`
	MetricsBytes  int64            `json:"metrics_bytes,omitempty"`
	EpisodesBytes int64            `json:"episodes_bytes,omitempty"`
	Task          uint16           `json:"task,omitempty"`
	Longest       uint64           `json:"longest_episode,omitempty"`
	// Offset of the env steps from this process's count, for a replacing runner.
	Offset int64 `json:"env_steps_offset,omitempty"`
}

const windowBlob = "window"

// Snapshot saves the window and the counters, and how long the files are.
func (c *Runner) Snapshot() (component.State, error) {
	return component.State{
		Meta: saved{
			Window: c.window.State(), Wall: c.wall(), Made: c.envStepsMade(), Trained: c.trained,
			Version: c.version, Marks: c.log.marks(), Task: c.task,
			Offset: c.offset, Longest: uint64(c.longest.Value()),
		},
		Blobs: map[string][]byte{windowBlob: c.window.Append(nil)},
	}, nil
}

// Longest returns the env steps of the longest episode in a runner's saved state, 0 if none; see session.Runner.
func (c *Runner) Longest(state component.State) (uint64, error) {
	var s saved
	err := state.Decode(&s)
	return s.Longest, err
}

// Restore continues from a snapshot: window, counters, wall time and files. In asynchronous mode the environments of a
// resumed run start again, so the window counts as full only when each has ended an episode again.
func (c *Runner) Restore(state component.State) error {
	var from saved
	if err := state.Decode(&from); err != nil {
		return err
	}
	if from.Wall < 0 {
		return fmt.Errorf("saved state has run for %v", from.Wall)
	}
	if err := c.window.Restore(from.Window, state.Blobs[windowBlob]); err != nil {
		return err
	}
	c.longest.Set(max(c.longest.Value(), float64(from.Longest)))
	c.known = 0 // the window has the saved number of environments now
	c.wallHad, c.trained, c.version, c.task = from.Wall, from.Trained, from.Version, from.Task
	if c.takesOver() { // the environments continue, and the process's counters keep their values
		c.offset = from.Offset
	} else {
		c.offset += int64(from.Made)
		c.episodes.Add(from.Window.Episodes)
		if !c.h.Run.Synchronous {
			c.window.Uncover()
		}
	}
	if from.Marks == nil {
		from.Marks = map[string]int64{logJSONL: from.MetricsBytes, EpisodesFile: from.EpisodesBytes}
	}
	c.log.rewind(from.Marks)
	return nil
}
