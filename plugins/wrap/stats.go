package wrap

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// recordStats reports return and length of each episode as they are at its place in the list, under env/NAME_return and
// env/NAME_length.
type recordStats struct {
	Name string `toml:"record_stats" doc:"Reports return and length of episodes at this place, as env/NAME_return and env/NAME_length." range:"small letters, digits and _"`
}

var statsName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

func (c *recordStats) validate(bad func(key, reason, help string)) {
	if !statsName.MatchString(c.Name) {
		bad("record_stats", fmt.Sprintf("is %q, want a name of small letters, digits and _", c.Name), `"frames" reports env/frames_return and env/frames_length`)
	}
}

func (c *recordStats) describe(*hostabi.EnvSpec) error { return nil }

func (c *recordStats) around(w *wrapped) layer {
	return &statsLayer{w: w, returns: make([]float64, w.o.Envs), lengths: make([]uint32, w.o.Envs), returnName: c.Name + "_return", lengthName: c.Name + "_length"}
}

type statsLayer struct {
	plain
	w                      *wrapped
	tr                     trajectory.Trajectory
	returns                []float64 // of the running episodes, of all agents
	lengths                []uint32
	returnName, lengthName string
}

func (l *statsLayer) bind(tr trajectory.Trajectory) { l.tr = tr }

func (l *statsLayer) begin(index int, _ uint64, _ bool) { l.returns[index], l.lengths[index] = 0, 0 }

func (l *statsLayer) after(t int) error {
	rewards := l.tr.Row(trajectory.Reward, t).Float32()
	for i := range l.returns {
		if l.w.ends.idle[i] != 0 {
			continue
		}
		for row, end := l.tr.Schema.RowsOf(i); row < end; row++ {
			l.returns[i] += float64(rewards[row])
		}
		l.lengths[i]++
		if l.w.ends.over[i] == 0 {
			continue
		}
		if report := l.w.o.Metric; report != nil {
			report(env.Metric{Env: i, Name: l.returnName, Value: l.returns[i]})
			report(env.Metric{Env: i, Name: l.lengthName, Value: float64(l.lengths[i])})
		}
		l.returns[i], l.lengths[i] = 0, 0
	}
	return nil
}

func (l *statsLayer) bytes() int { return 12 }

func (l *statsLayer) save(index int, dst []byte) {
	binary.LittleEndian.PutUint64(dst, math.Float64bits(l.returns[index]))
	binary.LittleEndian.PutUint32(dst[8:], l.lengths[index])
}

func (l *statsLayer) load(index int, src []byte) {
	l.returns[index], l.lengths[index] = math.Float64frombits(binary.LittleEndian.Uint64(src)), binary.LittleEndian.Uint32(src[8:])
}
