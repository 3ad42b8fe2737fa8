package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// idle is how long the loop sleeps at most before it checks whether it must end.
const idle = time.Second

// errLength: a number of the host is out of range.
var errLength = errors.New("out of range")

// serve answers the host's messages until stop, or until the host has shut the transport.
func (w *envs) serve() {
	runtime.LockOSThread() // a thread that sleeps in the kernel is scheduled sooner
	defer runtime.UnlockOSThread()
	for {
		w.mu.Lock()
		if w.stopped {
			w.mu.Unlock()
			return
		}
		n := w.host.Get(w.got[:])
		if n > 0 {
			w.answer(&w.got[0])
		}
		w.mu.Unlock()
		if n == 0 && !w.host.Wait(idle) && w.host.IsShut() {
			return
		}
	}
}

// answer handles one message and replies. The caller holds mu.
func (w *envs) answer(m *hostabi.Message) {
	call := callOf(m.Slot)
	if call == "" {
		return // from a later version, or about the link itself
	}
	err := w.do(m, call)
	*m = hostabi.Message{Slot: hostabi.LinkEnvReply, T: m.T}
	if err != nil {
		w.explain(m, call, err)
	}
	w.put(m)
}

// callOf returns the name of the call of a message.
func callOf(slot uint16) string {
	switch slot {
	case hostabi.LinkEnvStep:
		return hostabi.ExportStep
	case hostabi.LinkEnvReset:
		return hostabi.ExportReset
	case hostabi.LinkEnvBind:
		return hostabi.ExportBind
	}
	return ""
}

// do makes the call. A panic of the environments is a trap: they are made again before the next call.
func (w *envs) do(m *hostabi.Message, call string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			w.log.Error("panic in an environment", "call", call, "panic", v, "stack", string(debug.Stack()))
			err = &env.Fault{Kind: env.FaultTrap, Call: call, Env: -1, Err: fmt.Errorf("panic: %v", v)}
		}
	}()
	switch m.Slot {
	case hostabi.LinkEnvStep:
		return w.env.Step(int(m.T))
	case hostabi.LinkEnvReset:
		return w.reset(int(m.T), m.Kind)
	}
	return w.bind(m.T, m.Inline[0], m.Inline[1])
}

// put sends a message. The host reads while it waits for an answer, so there is room soon; if the host is gone the
// message is lost.
func (w *envs) put(m *hostabi.Message) {
	w.one[0] = *m
	for w.host.Put(w.one[:]) == 0 {
		if !w.host.WaitRoom(idle) && w.host.IsShut() {
			return
		}
	}
}

// bind makes the environments write to a block of an announced file.
func (w *envs) bind(index uint32, number, offset uint64) error {
	s, err := w.space(number)
	if err != nil {
		return err
	}
	size := uint64(s.seg.Size())
	if bytes := uint64(s.schema.Bytes); offset > size || bytes > size-offset {
		return fmt.Errorf("%w: block %d at %d of %d bytes", errLength, index, offset, size)
	}
	return w.env.Bind(env.Block{
		Trajectory: trajectory.Trajectory{Schema: s.schema, Mem: s.seg.Bytes()[offset:][:s.schema.Bytes]},
		Index:      index, FD: s.seg.FD(), Offset: int64(offset),
	})
}

// space returns a mapped file, mapping it the first time.
func (w *envs) space(number uint64) (*space, error) {
	if s := w.spaces[number]; s != nil {
		return s, nil
	}
	got, err := w.files.take(number)
	if err != nil {
		return nil, err
	}
	seg, err := open(got)
	if err != nil {
		return nil, err
	}
	whole, err := trajectory.DecodeSchema(got.frame.Schema, seg.Size())
	if err != nil {
		return nil, errors.Join(err, seg.Close())
	}
	trajectories, ok := whole.(*trajectory.Schema)
	if !ok || trajectories.Shape.Envs != w.batch.BlockEnvs {
		return nil, errors.Join(fmt.Errorf("%w: file %d has no blocks of %d environments", errLength, number, w.batch.BlockEnvs), seg.Close())
	}
	part, err := trajectories.Slice(w.batch.FirstColumn, w.batch.Envs)
	if err != nil {
		return nil, errors.Join(err, seg.Close())
	}
	s := &space{seg: seg, schema: part}
	w.spaces[number] = s
	return s, nil
}

// open maps an announced file.
func open(a announced) (*shm.Segment, error) {
	fd, err := shm.Take(a.file)
	if err != nil {
		return nil, err
	}
	seg, err := shm.Open(fd, shm.ReadWrite)
	if err != nil {
		return nil, err
	}
	if int64(seg.Size()) < a.frame.Bytes {
		return nil, errors.Join(fmt.Errorf("%w: file %d has %d bytes of %d", errLength, a.frame.Number, seg.Size(), a.frame.Bytes), seg.Close())
	}
	return seg, nil
}

// area returns the scratch area.
func (w *envs) area() ([]byte, error) {
	if w.memory != nil {
		return w.memory, nil
	}
	got, err := w.files.take(0)
	if err != nil {
		return nil, err
	}
	seg, err := open(got)
	if err != nil {
		return nil, err
	}
	if seg.Size() < w.scratch.Bytes {
		return nil, errors.Join(fmt.Errorf("%w: scratch area of %d bytes", errLength, seg.Size()), seg.Close())
	}
	w.memory = seg.Bytes()
	return w.memory, nil
}

// reset resets environments by the masks and seeds in the scratch area.
func (w *envs) reset(t int, kind uint16) error {
	var mask []uint8
	var seeds []uint64
	if kind&(hostabi.LinkEnvMask|hostabi.LinkEnvSeeds) != 0 {
		area, err := w.area()
		if err != nil {
			return err
		}
		n := w.batch.Envs
		if kind&hostabi.LinkEnvMask != 0 {
			mask = area[w.scratch.MaskAt:][:n]
		}
		if kind&hostabi.LinkEnvSeeds != 0 {
			seeds = w.seedsFrom(area[w.scratch.SeedsAt:][:8*n])
		}
	}
	return w.env.Reset(t, mask, seeds)
}

func (w *envs) seedsFrom(b []byte) []uint64 {
	w.seeds = w.seeds[:0]
	for ; len(b) >= 8; b = b[8:] {
		w.seeds = append(w.seeds, binary.LittleEndian.Uint64(b))
	}
	return w.seeds
}

// explain turns a reply into an error.
func (w *envs) explain(m *hostabi.Message, call string, err error) {
	status, kind, text := hostabi.StatusInternal, uint32(0), err.Error()
	var f *env.Fault
	switch {
	case errors.As(err, &f):
		kind = faultKind(f.Kind)
		if env := f.Env - w.batch.FirstEnv; f.Env >= 0 && env >= 0 && env < w.batch.Envs {
			m.Inline[1] = uint64(env) + 1
		}
		text = f.Err.Error()
		if f.Call != call {
			text = f.Call + ": " + text
		}
	case errors.Is(err, env.ErrPoisoned):
		status = hostabi.StatusState
	case errors.Is(err, env.ErrUnsupported):
		status, kind = hostabi.StatusUnsupported, hostabi.LinkEnvFaultRefused
		text = strings.TrimPrefix(text, env.ErrUnsupported.Error()+": ")
	}
	m.Kind, m.Split = uint16(-status), kind
	area, err := w.area()
	if err != nil {
		w.log.Error("an environment's error has no place to go", "text", text, "error", err)
		return
	}
	m.Inline[0] = uint64(copy(area[w.scratch.TextAt:][:w.scratch.Text], shorten(text, w.scratch.Text)))
}

// faultKind translates a kind to the host's number.
func faultKind(k env.FaultKind) uint32 {
	switch k {
	case env.FaultTrap:
		return hostabi.LinkEnvFaultTrap
	case env.FaultDeadline:
		return hostabi.LinkEnvFaultDeadline
	case env.FaultMemory:
		return hostabi.LinkEnvFaultMemory
	}
	return hostabi.LinkEnvFaultStatus
}

// shorten cuts a text to at most n bytes, between two characters.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// metric forwards a number that an environment reports. The caller holds mu.
func (w *envs) metric(m env.Metric) {
	number, ok := w.metrics[m.Name]
	if !ok {
		number = uint32(len(w.metrics))
		w.metrics[m.Name] = number
		if err := w.send(native.Frame{Metric: &native.Metric{Number: number, Name: m.Name}}); err != nil {
			w.log.Warn("metric not announced", "name", m.Name, "error", err)
		}
	}
	w.put(&hostabi.Message{Slot: hostabi.LinkEnvMetric, T: number, Split: uint32(m.Gather),
		Inline: [2]uint64{math.Float64bits(m.Value), uint64(m.Env + 1)}})
}
