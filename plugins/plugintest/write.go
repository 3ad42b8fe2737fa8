package plugintest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
)

// index is the place of one element in the slice of its column.
func (e *scripted) index(c trajectory.Column, i, t, elem int) int {
	l, _ := e.block.Schema.Layout(c)
	return (t*l.StrideT + i*l.StrideEnv + elem*l.StrideElem) / l.DType.Bytes()
}

// act reads an environment's actions into e.acted. An action outside its space is an error.
func (e *scripted) act(i, t int) error {
	e.acted = e.acted[:0]
	for k := range e.plugin.spaces {
		space := &e.plugin.spaces[k]
		row := e.block.Row(trajectory.Action.At(k), t)
		for elem := range row.Elems {
			v := row.Value(i, elem)
			low, high := float64(space.Start), float64(space.Start)
			if space.Discrete() {
				high += float64(space.Count(elem)) - 1
			} else {
				l, h := space.Bounds(elem)
				low, high = float64(l), float64(h)
			}
			if !(low <= v && v <= high) {
				return fmt.Errorf("%v", v)
			}
			e.acted = append(e.acted, float32(v))
		}
	}
	return nil
}

// sum adds up the actions that act has read.
func (e *scripted) sum() (all float32) {
	for _, v := range e.acted {
		all += v
	}
	return all
}

func (e *scripted) setFloat32(c trajectory.Column, i, t, elem int, v float32) {
	e.block.Float32(c)[e.index(c, i, t, elem)] = v
}

func (e *scripted) setByte(c trajectory.Column, i, t, elem int, v byte) {
	e.block.Bytes(c)[e.index(c, i, t, elem)] = v
}

// tell writes the figures of a step.
func (e *scripted) tell(i, t int, ended bool) {
	rest := e.told
	for k, info := range e.plugin.script.Infos {
		n := info.Elems(hostabi.MaxTensorElems)
		for elem := 0; elem < n && (ended || info.Flags&hostabi.TensorEpisode == 0); elem++ {
			e.setFloat32(trajectory.Info.At(k), i, t, elem, rest[elem])
		}
		rest = rest[n:]
	}
}

// write writes the results of a step except observations.
func (e *scripted) write(i, t int, reward float32, terminated, truncated bool) {
	e.setFloat32(trajectory.Reward, i, t, 0, reward)
	e.setByte(trajectory.Terminated, i, t, 0, flag(terminated))
	e.setByte(trajectory.Truncated, i, t, 0, flag(truncated))
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// observe writes an observation to a row of obs or to final_obs.
func (e *scripted) observe(i, t int, c trajectory.Column) {
	if len(e.shown) > 0 {
		e.show(i, t, c)
		return
	}
	s := &e.states[i]
	e.obs = [ObsElems]float32{
		ObsEnv: float32(e.options.FirstEnv + i), ObsEpisode: float32(s.Episode), ObsStep: float32(s.Step), ObsChance: s.Chance,
		ObsActions: s.Actions,
	}
	if change := e.plugin.script.Observe; change != nil {
		change(e.at(i), &e.obs)
	}
	for elem, v := range e.obs {
		e.setFloat32(c, i, t, elem, v)
	}
	if !e.plugin.script.Picture {
		return
	}
	for elem := range 6 {
		e.setByte(c.At(1), i, t, elem, byte(int(s.Step)*elem)+byte(s.Chance*256))
	}
}

// show writes the observations that the script describes.
func (e *scripted) show(i, t int, c trajectory.Column) {
	clear(e.shown)
	e.plugin.script.Show(e.at(i), e.shown)
	rest := e.shown
	for k := range e.plugin.script.Observations {
		row := e.block.Row(c.At(k), t)
		for elem, v := range rest[:row.Elems] {
			switch at := row.Data[i*row.StrideRow+elem*row.StrideElem:]; row.DType {
			case hostabi.U8:
				at[0] = byte(v)
			case hostabi.I32:
				binary.LittleEndian.PutUint32(at, uint32(int32(v)))
			default:
				binary.LittleEndian.PutUint32(at, math.Float32bits(float32(v)))
			}
		}
		rest = rest[row.Elems:]
	}
}

// mask writes the legal actions of the next step; after an end all are, because none is read.
func (e *scripted) mask(i, t int) {
	legal := e.plugin.script.Legal
	if legal == nil {
		return
	}
	at, value, anything := e.at(i), 0, e.states[i].Ended && !e.plugin.script.Flaws.MaskAfterEnd
	for k := range e.plugin.masks {
		c := trajectory.Mask.At(k)
		l, _ := e.block.Schema.Layout(c)
		for elem := range l.Elems {
			e.setByte(c, i, t, elem, flag(anything || legal(at, value)))
			value++
		}
	}
}

// spoil overwrites the results of step t by the cue. After a reset t is the row before the reset one.
func (e *scripted) spoil(c Cue, i, t int) {
	switch c {
	case NaNObservation:
		e.setFloat32(trajectory.Obs, i, t+1, ObsChance, float32(math.NaN()))
	case NaNFinalObs:
		e.setFloat32(trajectory.FinalObs, i, 0, ObsChance, float32(math.NaN()))
	case NaNReward:
		e.setFloat32(trajectory.Reward, i, t, 0, float32(math.NaN()))
	case InfiniteReward:
		e.setFloat32(trajectory.Reward, i, t, 0, float32(math.Inf(1)))
	case TerminatedOfTwo:
		e.setByte(trajectory.Terminated, i, t, 0, 2)
	case TruncatedOfTwo:
		e.setByte(trajectory.Truncated, i, t, 0, 2)
	case NoLegalAction:
		for value := range e.plugin.script.Actions {
			e.setByte(trajectory.Mask, i, t+1, value, 0)
		}
	case MaskOfThree:
		e.setByte(trajectory.Mask, i, t+1, 0, 3)
	}
}
