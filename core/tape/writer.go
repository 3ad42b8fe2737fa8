package tape

import (
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
)

// Writer records what a batch of environments is given, for its episodes to be played again. A nil Writer records nothing. It is for the
// goroutine of the environments. Actions are written late, so a block stays as it is until the next Bind, Flush or record.
type Writer struct {
	env    env.Env
	envs   int
	stream *Stream
	tr     trajectory.Trajectory // that is bound

	from, next int    // rows that have been stepped and not written
	steps      uint64 // made
	base       uint64 // position before row 0 of the block; it may be below 0
	other      bool   // the environments have a state that is not on the tape: a key comes next
	params     []byte // that were written last
	parts      []byte // room for a record
}

// NewWriter returns the writer of a stream; nil for no stream.
func NewWriter(e env.Env, s *Stream) *Writer {
	if s == nil {
		return nil
	}
	return &Writer{env: e, envs: s.Head.Envs, stream: s}
}

// Bind notes the block that is bound next.
func (t *Writer) Bind(tr trajectory.Trajectory) {
	if t != nil {
		t.Flush()
		t.tr = tr
	}
}

// Step notes that row t is stepped, whose actions are written.
func (t *Writer) Step(row int) {
	if t == nil {
		return
	}
	if t.other || t.stream.Due() {
		t.key(row)
	}
	if t.from == t.next {
		t.from = row
		t.writeParams()
	}
	t.base, t.next = t.steps-uint64(row), row+1
	t.steps++
}

// key writes the environments' state before row t. Where they have none to give, and one that is not on the tape, nothing can be played.
func (t *Writer) key(row int) {
	t.Flush()
	snapshot, err := t.env.Snapshot()
	switch {
	case err == nil:
		seen := binary.LittleEndian.AppendUint32(t.parts[:0], 0)
		seen = trajectory.AppendSeen(seen, t.tr, row)
		binary.LittleEndian.PutUint32(seen, uint32(len(seen)-4))
		t.stream.Write(Key, t.steps, seen, snapshot)
		t.parts, t.params = seen, nil
	case t.other:
		t.stream.Write(Lost, t.steps, nil, nil)
	}
	t.other = false
	t.stream.Keyed()
}

// writeParams writes reset parameters that are others than before.
func (t *Writer) writeParams() {
	n := t.tr.Schema.ParamBytes()
	if n == 0 {
		return
	}
	now := append(t.parts[:0], make([]byte, n)...)
	trajectory.Params{Trajectory: t.tr}.Save(now)
	if t.parts = now; string(now) == string(t.params) {
		return
	}
	t.params = append(t.params[:0], now...)
	t.stream.Write(Params, t.steps, now, nil)
}

// Flush writes the actions of the rows that have been stepped.
func (t *Writer) Flush() {
	if t == nil || t.from == t.next {
		return
	}
	t.parts = trajectory.AppendActions(t.parts[:0], t.tr, t.from, t.next)
	t.stream.Write(Actions, t.steps-uint64(t.next-t.from), t.parts, nil)
	t.from, t.next = 0, 0
}

// Reset notes that episodes begin where mask is not 0, or everywhere.
func (t *Writer) Reset(mask []uint8, seeds []uint64) {
	if t == nil {
		return
	}
	t.Flush()
	t.writeParams()
	out := t.parts[:0]
	if mask == nil {
		for range t.envs {
			out = append(out, 1)
		}
	} else {
		out = append(out, mask...)
	}
	for _, seed := range seeds {
		out = binary.LittleEndian.AppendUint64(out, seed)
	}
	t.stream.Write(Resets, t.steps, out, nil)
	t.parts = out
}

// Lost notes an error of the environments: some have lost their episodes, and do not lose them again when they are played. An error that is
// their own fault is kept as a Failure.
func (t *Writer) Lost(err error) {
	if t == nil || err == nil {
		return
	}
	t.Flush()
	t.stream.Write(Lost, t.steps, failureOf(err), nil)
	t.other = true
}

// failureOf returns a Failure as JSON; nil for an error that is no fault of the environments, such as the end of their process.
func failureOf(err error) (doc []byte) {
	var fault *env.Fault
	var output *env.OutputError
	switch {
	case errors.As(err, &fault) && fault.Kind != env.FaultLost:
		doc, _ = json.Marshal(Failure{fault.Env, fault.Err.Error()}) // of a number and a string
	case errors.As(err, &output):
		doc, _ = json.Marshal(Failure{output.Env, output.Err.Error()})
	}
	return doc
}

// Renewed notes that the environments are as good as new.
func (t *Writer) Renewed() {
	if t == nil {
		return
	}
	t.Flush()
	t.stream.Write(Renewed, t.steps, nil, nil)
	t.other, t.params = false, nil
}

// Changed notes that the environments have got a state that is not on the tape.
func (t *Writer) Changed(yes bool) {
	if t != nil && yes {
		t.other = true
	}
}

// Took notes that the environments have taken the state of others over, or of those on several tapes where from is nil.
func (t *Writer) Took(from *Writer) {
	if t == nil {
		return
	}
	if t.other = true; from != nil {
		t.stream.Follows(from.stream, from.steps)
	}
}

// End notes an episode whose last row is one of the block's.
func (t *Writer) End(row int, e *trajectory.Episode, version, firstStep uint64) {
	if t == nil {
		return
	}
	t.Flush()
	t.stream.End(t.base+uint64(row)+1, Episode{Env: e.Env, Agent: e.Agent, Terminated: e.Terminated, Length: e.Length,
		Number: e.Number, Return: e.Return, PolicyVersion: version, Step: firstStep + uint64(row)})
}

// Close ends the record of the batch.
func (t *Writer) Close() {
	if t != nil {
		t.stream.Close()
	}
}
