package wasm

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk"
)

// The SDK adds to the author's bytes: the head before them; flags (u32), random stream (u64) and, where agents end apart, a
// byte for each agent after them.
const (
	savedHead  = 8 // state version and number of bytes that follow, u32 each
	savedBytes = 12
)

// tail returns how many bytes follow the author's.
func (b *batch[A, O]) tail() int {
	if b.apart {
		return savedBytes + b.agents
	}
	return savedBytes
}

// save returns the state of an environment. It is valid until the next call.
func (b *batch[A, O]) save(i int) ([]byte, hostabi.Status, error) {
	saver, ok := b.envs.(sdk.BatchSaver)
	if !ok {
		return nil, hostabi.StatusUnsupported, errUnsupported
	}
	data, err := saver.AppendEnv(append(b.saved[:0], make([]byte, savedHead)...), i)
	if errors.Is(err, errUnsupported) {
		return nil, hostabi.StatusUnsupported, err
	}
	if err != nil {
		return nil, hostabi.StatusInternal, err
	}
	le := binary.LittleEndian
	data = le.AppendUint32(data, uint32(flag(b.waiting[i])))
	b.saved = le.AppendUint64(data, b.rngs[i].State())
	if b.apart {
		b.saved = append(b.saved, b.over[i*b.agents:][:b.agents]...)
	}
	le.PutUint32(b.saved, b.stateVersion)
	le.PutUint32(b.saved[4:], uint32(len(b.saved)-savedHead))
	return b.saved, hostabi.StatusOK, nil
}

func (b *batch[A, O]) load(i int, data []byte) (hostabi.Status, error) {
	saver, ok := b.envs.(sdk.BatchSaver)
	if !ok {
		return hostabi.StatusUnsupported, errUnsupported
	}
	if len(data) < savedHead+b.tail() {
		return hostabi.StatusArgument, errors.New("saved state is too short")
	}
	le := binary.LittleEndian
	if version := le.Uint32(data); version != b.stateVersion {
		return hostabi.StatusVersion, errors.New("saved state of version " + strconv.FormatUint(uint64(version), 10) + ", this environment reads " +
			strconv.FormatUint(uint64(b.stateVersion), 10))
	}
	if n := le.Uint32(data[4:]); int(n) != len(data)-savedHead {
		return hostabi.StatusArgument, errors.New("saved state is not as long as it says")
	}
	own, rest := data[savedHead:len(data)-b.tail()], data[len(data)-b.tail():]
	flags := le.Uint32(rest)
	if flags > 1 {
		return hostabi.StatusArgument, errors.New("saved state has unknown flags")
	}
	if err := saver.LoadEnv(i, own); errors.Is(err, errUnsupported) {
		return hostabi.StatusUnsupported, err
	} else if err != nil {
		return hostabi.StatusArgument, err
	}
	b.setWaiting(i, flags == 1)
	b.rngs[i] = sdk.RandAt(le.Uint64(rest[4:]))
	if b.apart {
		copy(b.over[i*b.agents:][:b.agents], rest[savedBytes:])
	}
	if b.acts != nil {
		b.ask(i)
	}
	return hostabi.StatusOK, nil
}

func (b *batch[A, O]) text(i int) (string, hostabi.Status) {
	if r, ok := b.envs.(interface{ text(int) (string, bool) }); ok {
		if text, ok := r.text(i); ok {
			return text, hostabi.StatusOK
		}
	}
	return "", hostabi.StatusUnsupported
}

// draw draws environment i on the memory that to gives for so many bytes, where it gives any, and returns how many they are.
func (b *batch[A, O]) draw(i int, to func(n int) []byte) int32 {
	drawer, ok := b.envs.(sdk.BatchDrawer)
	if each, is := b.envs.(interface{ drawer() sdk.BatchDrawer }); is {
		drawer, ok = each.drawer(), each.drawer() != nil
	}
	if !ok {
		return int32(hostabi.StatusUnsupported)
	}
	p := b.picture
	n := p.Width * p.Height * 3
	if p.RGB = to(n); p.RGB != nil {
		clear(p.RGB)
		drawer.Draw(i, &p)
	}
	return int32(n)
}
