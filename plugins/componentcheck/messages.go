package componentcheck

import (
	"errors"
	"io"
	"slices"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/recording"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// Message is one to play.
type Message struct{ *recording.Message }

// Read reads the messages of a recording.
func Read(from io.Reader) ([]Message, error) {
	r, err := recording.NewReader(from)
	if err != nil {
		return nil, err
	}
	var list []Message
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) && !errors.Is(err, recording.ErrFormat) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Message{m})
	}
}

// item is a message for a slot.
type item struct {
	slot    string
	payload component.Payload
	message hostabi.Message
	block   []byte
	schema  any
	key     any // what the arenas of equal schemas go by
}

// itemsFor returns what is played to the slots of a component: the recorded messages with their payloads, else some that are made
// up; and the slots for which there is nothing.
func itemsFor(m *component.Manifest, recorded []Message) (items []item, silent []string) {
	if len(recorded) > 0 {
		for _, x := range recorded {
			items = append(items, itemsOf(m, x)...)
		}
	} else {
		for i := range rounds {
			for _, p := range m.Slots {
				items = append(items, madeUp(p, i)...)
			}
		}
	}
	for _, p := range m.Slots {
		if !slices.ContainsFunc(items, func(x item) bool { return x.slot == p.Name }) {
			silent = append(silent, p.Name)
		}
	}
	return items, silent
}

// itemsOf gives a recorded message to each slot with its payload.
func itemsOf(m *component.Manifest, x Message) (items []item) {
	payload := component.PayloadOf(x.Payload)
	if payload.OnLoan && x.Block == nil {
		return nil // a tap has no blocks of requests
	}
	for _, p := range m.Slots {
		if p.Payload == x.Payload {
			items = append(items, item{p.Name, payload, x.Message.Message, x.Block, x.Schema, keyOf(x.Schema)})
		}
	}
	return items
}

// keyOf returns the schema itself where it is a pointer; there is one arena for all others.
func keyOf(schema any) any {
	if _, names := schema.([]string); names {
		return "names"
	}
	return schema
}

// rounds is how many messages are made up for each slot.
const rounds = 8

// sample is what made up blocks hold: steps of a small environment, laid out with all that wires can grant.
var sample = func() *trajectory.Schema {
	vector := func(role hostabi.Role, dtype hostabi.DType, n uint32) hostabi.Tensor {
		return hostabi.Tensor{Role: role, DType: dtype, Rank: 1, Shape: [hostabi.MaxRank]uint32{n}}
	}
	spec := hostabi.EnvSpec{Name: "sample@1", ABI: hostabi.EnvABI, Autoreset: hostabi.SameStep, Caps: hostabi.CapStrides, Tensors: []hostabi.Tensor{
		{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2}, vector(hostabi.RoleObservation, hostabi.F32, 4), {Role: hostabi.RoleReward, DType: hostabi.F32},
		{Role: hostabi.RoleTerminated, DType: hostabi.U8}, {Role: hostabi.RoleTruncated, DType: hostabi.U8},
		vector(hostabi.RoleFinalObservation, hostabi.F32, 4), vector(hostabi.RoleResetParam, hostabi.F32, 1),
	}}
	s, err := trajectory.NewSchema(spec, trajectory.Shape{Steps: 16, Envs: 4, Granted: "action reset_param reward shaped_reward"})
	if err != nil {
		panic(err) // it does not depend on anything
	}
	return s
}()

// madeUp returns message i of those made up for a slot; none for payloads that are the component's own.
func madeUp(p component.Port, i int) []item {
	x := item{slot: p.Name, payload: component.PayloadOf(p.Payload), schema: sample, key: sample}
	switch p.Payload {
	case component.PayloadEpisode:
		x.message = trajectory.Episode{Return: float32(i), Length: uint32(10 + i), Env: uint32(i % 4), Terminated: i%2 == 0}.Message()
		return []item{x}
	case component.PayloadTrajectory:
		x.message = hostabi.Message{PolicyVersion: uint64(i)}
	case component.PayloadRequest:
		x.message = trajectory.ActRequest{T: i, Step: uint64(i)}.Message()
	case component.PayloadResets, component.PayloadRewards:
		x.message = trajectory.BlockRequest{Step: uint64(16 * i)}.Message()
	default:
		return nil
	}
	x.block = blockOf(i)
	return []item{x}
}

// blockOf makes up steps.
func blockOf(i int) []byte {
	t := trajectory.Trajectory{Schema: sample, Mem: make([]byte, sample.Bytes)}
	for k := range t.Float32(trajectory.Obs) {
		t.Float32(trajectory.Obs)[k] = float32(k%17) / 17
	}
	for k := range t.Float32(trajectory.Reward) {
		t.Float32(trajectory.Reward)[k] = float32((k+3*i)%5) / 4
		t.Bytes(trajectory.Valid)[k] = 1
	}
	return t.Mem
}
