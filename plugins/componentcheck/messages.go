package componentcheck

import (
	"errors"
	"io"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
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
	schema  arena.Schema
	key     arena.Schema // key of the arenas of equal schemas; nil for all schemas that are no pointers
}

// itemsFor returns the messages to play to the slots of a component: the recorded messages with their payloads, else made-up
// ones; and the slots for which there are none.
func itemsFor(m *component.Manifest, looks []hostabi.ManifestColumn, policy string, recorded []Message) (items []item, silent []string, err error) {
	for _, x := range recorded {
		items = append(items, itemsOf(m, x)...)
	}
	if len(recorded) == 0 {
		if items, err = madeUp(m, looks, policy); err != nil {
			return nil, nil, err
		}
	}
	for _, p := range m.Slots {
		if !slices.ContainsFunc(items, func(x item) bool { return x.slot == p.Name }) {
			silent = append(silent, p.Name)
		}
	}
	return items, silent, nil
}

// itemsOf gives a recorded message to each slot with its payload.
func itemsOf(m *component.Manifest, x Message) (items []item) {
	payload := component.PayloadOf(x.Payload)
	if payload.OnLoan && x.Block == nil {
		return nil // the tap came too late for it
	}
	for _, p := range m.Slots {
		if p.Payload == x.Payload {
			items = append(items, item{p.Name, payload, x.Message.Message, x.Block, x.Schema, keyOf(x.Schema)})
		}
	}
	return items
}

// keyOf returns the schema itself where it is a pointer; there is one arena for all others.
func keyOf(schema arena.Schema) arena.Schema {
	if _, names := schema.(trajectory.Names); names {
		return nil
	}
	return schema
}

// rounds is how many messages are made up for each slot.
const rounds = 8

// madeUp returns some messages for each slot; none for payloads that are the component's own.
func madeUp(m *component.Manifest, looks []hostabi.ManifestColumn, policy string) (items []item, err error) {
	sample, err := sampleFor(looks, policy)
	if err != nil {
		return nil, err
	}
	for i := range rounds {
		for _, p := range m.Slots {
			x := item{slot: p.Name, payload: component.PayloadOf(p.Payload), schema: sample, key: sample}
			if x.message, err = messageFor(p.Payload, i); err != nil {
				continue
			}
			if p.Payload != component.PayloadEpisode {
				x.block = blockOf(sample, i)
			}
			items = append(items, x)
		}
	}
	return items, nil
}

// errOwn is the error for a payload that the host does not know.
var errOwn = errors.New("the payload is the component's own")

// messageFor makes message i with a payload up.
func messageFor(payload string, i int) (m hostabi.Message, err error) {
	switch payload {
	case component.PayloadEpisode:
		return trajectory.Episode{Return: float32(i), Length: uint32(10 + i), Env: uint32(i % 4), Terminated: i%2 == 0}.Message(), nil
	case component.PayloadTrajectory:
		return hostabi.Message{PolicyVersion: uint64(i)}, nil
	case component.PayloadRequest:
		if i == rounds-1 { // after the last step there is no action to write
			i = sampleSteps
		}
		return trajectory.ActRequest{T: i, Step: uint64(i), ValueOnly: i == sampleSteps}.Message(), nil
	case component.PayloadResets, component.PayloadRewards, component.PayloadObserve:
		return trajectory.BlockRequest{Step: uint64(16 * i)}.Message(), nil
	}
	return m, errOwn
}
