package wrap

import (
	"fmt"

	"github.com/rlhost/rlhost/hostabi"
)

// frameStack says how many frames enter the policies of the environment. The reader of the pipeline copies it to their key of
// that name: environments write each frame once, so there is nothing to put around them.
type frameStack struct {
	Frames int `toml:"frame_stack" doc:"Stacks the newest frames of each observation." range:"2 or more" unit:"frames" default:""`
}

func (c *frameStack) validate(bad func(key, reason, help string)) {
	if c.Frames < 1 {
		bad("frame_stack", fmt.Sprintf("is %d, want 1 frame or more", c.Frames), "4 is usual for pictures of games")
	}
}

func (c *frameStack) describe(*hostabi.EnvSpec) error { return nil }
