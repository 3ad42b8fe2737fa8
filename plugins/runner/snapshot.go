package runner

import (
	"fmt"
	"maps"
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
	// Others are the windows of the policies that do not lead, by their names, and Policy is then the leading one.
	Policy string                `json:"policy,omitempty"`
	Others map[string]savedOther `json:"others,omitempty"`
	// Offset of the env steps from this process's count, for a replacing runner.
	Offset int64 `json:"env_steps_offset,omitempty"`
}

// savedOther is the window of a policy that does not lead.
type savedOther struct {
	Window  WindowState `json:"window"`
	Task    uint16      `json:"task,omitempty"`
	Trained uint64      `json:"env_steps,omitempty"`
}

const windowBlob = "window"

// otherBlob names the blob of the window of a policy that does not lead.
func otherBlob(policy string) string { return windowBlob + "." + policy }

// Snapshot saves the windows and the counters, and how long the files are.
func (rn *Runner) Snapshot() (component.State, error) {
	s := saved{
		Window: rn.window.State(), Wall: rn.wall(), Made: rn.envStepsMade(), Trained: rn.trained,
		Version: rn.version, Marks: rn.log.marks(), Task: rn.task,
		Offset: rn.offset, Longest: uint64(rn.longest.Value()),
	}
	blobs := map[string][]byte{windowBlob: rn.window.Append(nil)}
	for policy, r := range rn.others {
		if s.Others == nil {
			s.Policy, s.Others = rn.h.Run.Policy, map[string]savedOther{}
		}
		s.Others[policy] = savedOther{Window: r.window.State(), Task: r.task, Trained: r.trained}
		blobs[otherBlob(policy)] = r.window.Append(nil)
	}
	return component.State{Meta: s, Blobs: blobs}, nil
}

// led makes a state that of a run with another leading policy than it was saved with.
func (s *saved) led(policy string, blobs map[string][]byte) {
	if s.Policy == "" || policy == "" || s.Policy == policy {
		return
	}
	was := s.Policy
	next, known := s.Others[policy]
	s.Others[was], blobs[otherBlob(was)] = savedOther{s.Window, s.Task, s.Trained}, blobs[windowBlob]
	s.Policy, s.Trained, s.Version = policy, next.Trained, 0 // its learner will report it
	s.Window, s.Task, blobs[windowBlob] = next.Window, next.Task, nil
	if known {
		blobs[windowBlob] = blobs[otherBlob(policy)]
		delete(s.Others, policy)
	}
}

// Longest returns the env steps of the longest episode in a runner's saved state, 0 if none; see session.Runner.
func (rn *Runner) Longest(state component.State) (uint64, error) {
	var s saved
	err := state.Decode(&s)
	return s.Longest, err
}

// EpisodesMark returns how many bytes of episodes.csv belong to a runner's saved state; see session.Runner.
func (rn *Runner) EpisodesMark(state component.State) (int64, error) {
	var s saved
	err := state.Decode(&s)
	return s.Marks[EpisodesFile], err
}

// Restore continues from a snapshot: window, counters, wall time and files. In asynchronous mode the environments of a
// resumed run start again, so the window counts as full only when each has ended an episode again.
func (rn *Runner) Restore(state component.State) error {
	var from saved
	if err := state.Decode(&from); err != nil {
		return err
	}
	if from.Wall < 0 {
		return fmt.Errorf("saved state has run for %v", from.Wall)
	}
	blobs := maps.Clone(state.Blobs)
	from.led(rn.h.Run.Policy, blobs)
	if err := rn.window.Restore(from.Window, blobs[windowBlob]); err != nil {
		return err
	}
	episodes := from.Window.Episodes
	for policy, s := range from.Others {
		r := rn.returnsOf(policy)
		if err := r.window.Restore(s.Window, blobs[otherBlob(policy)]); err != nil {
			return fmt.Errorf("policy %q: %w", policy, err)
		}
		r.task, r.trained = s.Task, s.Trained
		episodes += s.Window.Episodes
	}
	rn.longest.Set(max(rn.longest.Value(), float64(from.Longest)))
	rn.known = 0 // the windows have the saved number of environments now
	rn.episodeAt = from.Trained
	rn.wallHad, rn.trained, rn.version, rn.task = from.Wall, from.Trained, from.Version, from.Task
	if rn.takesOver() { // the environments continue, and the process's counters keep their values
		rn.offset = from.Offset
	} else {
		rn.offset += int64(from.Made)
		rn.episodes.Add(episodes)
		if !rn.h.Run.Synchronous {
			rn.window.Uncover()
			for _, r := range rn.others {
				r.window.Uncover()
			}
		}
	}
	if from.Marks == nil {
		from.Marks = map[string]int64{logJSONL: from.MetricsBytes, EpisodesFile: from.EpisodesBytes}
	}
	rn.log.rewind(from.Marks)
	return nil
}
