package wrap

import (
	"encoding/binary"
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// timeLimit truncates episodes after that many env steps.
type timeLimit struct {
	Steps int `toml:"time_limit" doc:"Truncates episodes after this many steps." range:"1 to 1,073,741,824" unit:"env steps" default:""`
}

func (c *timeLimit) validate(bad func(key, reason, help string)) {
	if c.Steps < 1 || c.Steps > 1<<30 {
		bad("time_limit", fmt.Sprintf("is %d, want 1 to %d env steps", c.Steps, 1<<30), "")
	}
}

// describe says the shorter limit. Next-step autoreset is left out where there is another mode: an environment that resets
// itself in the next step would make one step more than under the others before a limit ends its episode.
func (c *timeLimit) describe(s *hostabi.EnvSpec) error {
	if s.EpisodeLimit == 0 || s.EpisodeLimit > c.Steps {
		s.EpisodeLimit = c.Steps
	}
	if s.Autoreset != hostabi.NextStep {
		s.Autoreset &^= hostabi.NextStep
	}
	return nil
}

func (c *timeLimit) around(w *wrapped) layer {
	return &limitLayer{w: w, limit: uint32(c.Steps), ages: make([]uint32, w.o.Envs), due: make([]byte, w.o.Envs)}
}

type limitLayer struct {
	plain
	w     *wrapped
	tr    trajectory.Trajectory
	limit uint32
	ages  []uint32 // env steps of the running episodes
	due   []byte   // 1 where the limit has ended the episode and the next step begins another (next-step autoreset)
}

func (l *limitLayer) bind(tr trajectory.Trajectory) { l.tr = tr }

func (l *limitLayer) begin(index int, _ uint64, _ bool) { l.ages[index], l.due[index] = 0, 0 }

func (l *limitLayer) after(t int) error {
	w, reset := l.w, false
	for i := range l.ages {
		w.reset[i] = 0
		switch {
		case w.part[i] != 0 && l.due[i] != 0:
			l.due[i], w.reset[i], reset = 0, 1, true
			l.tr.ClearOutcomeOf(i, t) // agents reset in the same step
			continue
		case w.ends.idle[i] != 0:
			continue
		}
		if l.ages[i]++; w.ends.over[i] != 0 {
			l.ages[i] = 0
		}
		if l.ages[i] < l.limit {
			continue
		}
		l.ages[i] = 0
		w.ends.cut(l.tr, i, t)
		switch w.o.Autoreset {
		case hostabi.SameStep:
			w.reset[i], reset = 1, true
		case hostabi.NextStep:
			l.due[i] = 1
		}
	}
	if !reset {
		return nil
	}
	return w.inner.Reset(t+1, w.reset, nil)
}

func (l *limitLayer) bytes() int { return 5 }

func (l *limitLayer) save(index int, dst []byte) {
	binary.LittleEndian.PutUint32(dst, l.ages[index])
	dst[4] = l.due[index]
}

func (l *limitLayer) load(index int, src []byte) {
	l.ages[index], l.due[index] = binary.LittleEndian.Uint32(src), src[4]
}
