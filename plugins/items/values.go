package items

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Values are what a message says by itself, by names.
type Values []value

// value is a value with its name: a uint64, a float64, a bool or a place.
type value struct {
	name string
	is   any
}

// place stands for an array that is kept apart: its number among them.
type place uint32

// OfEpisode returns the values of an episode.
func OfEpisode(m *hostabi.Message) Values {
	e := trajectory.EpisodeOf(m)
	return Values{
		{"env", uint64(e.Env)}, {"agent", uint64(e.Agent)}, {"return", float64(e.Return)}, {"length", uint64(e.Length)},
		{"terminated", e.Terminated}, {"policy_version", m.PolicyVersion},
	}
}

// OfBlock returns the values of a trajectory that are not in its columns.
func OfBlock(t trajectory.Trajectory, m *hostabi.Message) Values {
	return Values{{"split", uint64(m.Split)}, {"rows", uint64(t.Meta().ValidRows)}}
}

// Text returns a value as text; ok is false where there is none of that name.
func (v Values) Text(name string) (text string, ok bool) {
	i := slices.IndexFunc(v, func(x value) bool { return x.name == name })
	if i < 0 {
		return "", false
	}
	return fmt.Sprint(v[i].is), true
}

// Number returns a value that is a number of 0 or more; ok is false for any other.
func (v Values) Number(name string) (n float64, ok bool) {
	i := slices.IndexFunc(v, func(x value) bool { return x.name == name })
	if i < 0 {
		return 0, false
	}
	whole, ok := v[i].is.(uint64)
	return float64(whole), ok
}

// AppendPlain appends values as rlhost.plain in Python has a dict.
func (v Values) AppendPlain(data []byte) []byte {
	data = binary.LittleEndian.AppendUint32(append(data, '{'), uint32(len(v)))
	for _, x := range v {
		data = x.append(data)
	}
	return data
}

// append appends a key of a dict with its value.
func (v value) append(data []byte) []byte {
	data = appendText(data, v.name)
	switch is := v.is.(type) {
	case uint64:
		data = binary.LittleEndian.AppendUint64(append(data, 'i'), is)
	case float64:
		data = binary.LittleEndian.AppendUint64(append(data, 'f'), math.Float64bits(is))
	case place:
		data = binary.LittleEndian.AppendUint32(append(data, 'p'), uint32(is))
	case bool:
		if is {
			data = append(data, 'T')
		} else {
			data = append(data, 'F')
		}
	}
	return data
}

func appendText(data []byte, text string) []byte {
	data = binary.LittleEndian.AppendUint32(append(data, 's'), uint32(len(text)))
	return append(data, text...)
}
