package wrap

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// livesPath is the info that tells how many lives are left.
const livesPath = "lives"

// lifeLoss ends episodes with each life, for learning: the game continues with the next one, whose first step is one of action 0.
type lifeLoss struct {
	On bool `toml:"life_loss" doc:"Ends the episode with each life, of the info lives; the game continues." range:"true" default:""`
}

func (c *lifeLoss) parts() {}

func (c *lifeLoss) validate(bad func(key, reason, help string)) { onlyOn("life_loss", c.On, bad) }

func (c *lifeLoss) describe(s *hostabi.EnvSpec) error {
	if _, err := livesOf(s); err != nil {
		return err
	}
	return describeOpening(s)
}

// livesOf returns the column that tells how many lives are left.
func livesOf(s *hostabi.EnvSpec) (trajectory.Column, error) {
	list := s.All(hostabi.RoleInfo)
	i := slices.IndexFunc(list, func(t hostabi.Tensor) bool { return t.Path == livesPath })
	switch {
	case i < 0:
		had := s.Spaces(hostabi.RoleInfo)
		if had == "" {
			had = "none"
		}
		return 0, fmt.Errorf("it has no info %q, the number of lives that are left: its infos are %s", livesPath, had)
	case list[i].Elems(2) != 1:
		return 0, fmt.Errorf("its info %q is %s, want one number", livesPath, list[i].Space())
	case list[i].Flags&hostabi.TensorEpisode != 0:
		return 0, errors.New(`its info "lives" has a value at the end of an episode alone, want one for each step`)
	}
	return trajectory.Info.At(i), nil
}

func (c *lifeLoss) around(w *wrapped) layer {
	column, _ := livesOf(&w.plugin.inner) // describe has found it
	l := &lifeLayer{opening: newOpening(w, 0), column: column, games: make([]game, w.o.Envs)}
	l.made = func(index, row int) { l.lost(index, row) }
	return l
}

// lifeLayer follows games, which have one episode for each life.
type lifeLayer struct {
	plain
	opening
	column trajectory.Column
	games  []game
}

// game is the state of an environment's game.
type game struct {
	lives, sum float32 // lives of the newest step, 0 before the first; rewards of the policy's steps
	length     uint32
}

func (l *lifeLayer) bind(tr trajectory.Trajectory) { l.opening.bind(tr) }

func (l *lifeLayer) begin(index int, _ uint64, _ bool) { l.games[index] = game{} }

func (l *lifeLayer) after(t int) error {
	rewards := l.tr.Row(trajectory.Reward, t).Float32()
	for i := range l.games {
		l.left[i] = 0
		if l.w.part[i] == 0 || l.w.ends.idle[i] != 0 {
			continue
		}
		g := &l.games[i]
		g.sum += rewards[i]
		if l.lost(i, t) {
			l.end(i, t)
			l.left[i] = 1
		}
	}
	return l.open(t + 1)
}

// lost takes in a step of a game, and reports whether it has lost a life and continues.
func (l *lifeLayer) lost(index, row int) bool {
	g := &l.games[index]
	g.length++
	if l.tr.Row(trajectory.Terminated, row).Data[index]|l.tr.Row(trajectory.Truncated, row).Data[index] != 0 {
		if report := l.w.o.Metric; report != nil {
			report(env.Metric{Env: index, Name: "game_return", Value: float64(g.sum)})
			report(env.Metric{Env: index, Name: "game_length", Value: float64(g.length)})
		}
		*g = game{}
		return false
	}
	before := g.lives
	g.lives = float32(l.tr.Row(l.column, row).Value(index, 0))
	return 0 < g.lives && g.lives < before
}

// end terminates the episode of an environment in a step. The observation after it is its last one.
func (l *lifeLayer) end(index, t int) {
	trajectory.EndUnwritten(l.tr, index, t)
	l.tr.Row(trajectory.Terminated, t).Data[index] = 1
	l.tr.KeepFinal(index, t+1)
	l.w.ends.over[index] = 1
}

func (l *lifeLayer) bytes() int { return 12 }

func (l *lifeLayer) save(index int, dst []byte) {
	g := &l.games[index]
	binary.LittleEndian.PutUint32(dst, math.Float32bits(g.lives))
	binary.LittleEndian.PutUint32(dst[4:], math.Float32bits(g.sum))
	binary.LittleEndian.PutUint32(dst[8:], g.length)
}

func (l *lifeLayer) load(index int, src []byte) {
	l.games[index] = game{math.Float32frombits(binary.LittleEndian.Uint32(src)), math.Float32frombits(binary.LittleEndian.Uint32(src[4:])),
		binary.LittleEndian.Uint32(src[8:])}
}
