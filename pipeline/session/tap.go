package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/recording"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// tapRoom is how many messages may wait for the client; further ones are skipped.
const tapRoom = 256

// tapper answers with the messages that pass.
type tapper struct{ job *job }

// tap answers VerbTap: each message is a notice.
func (p tapper) tap(ctx context.Context, q control.TapRequest, notice control.Notice) (*control.TapReply, error) {
	columns, err := columnsNamed(q.Columns)
	if err != nil {
		return nil, err
	}
	t := &tapping{live: p.job.history.live, every: max(q.Every, 1), limit: q.Limit, columns: columns, payloads: map[string]component.Payload{},
		last: map[string]uint64{}, records: make(chan control.TapRecord, tapRoom)}
	if q.Record != "" {
		if t.file, err = recording.Create(q.Record, q.Limit); err != nil {
			return nil, bad("the recording cannot be made: %v", err)
		}
		defer t.file.Close()
	}
	cancel, err := p.job.Pipeline.Tap(q.Pattern, len(columns) > 0 || t.file != nil, t.message)
	if err != nil {
		return nil, p.job.asError(ctx, err)
	}
	defer cancel()
	for t.limit == 0 || t.shown < t.limit {
		select {
		case r := <-t.records:
			if notice(r) != nil {
				return t.reply(), nil
			}
			t.shown++
		case <-t.file.Over():
			return t.fullReply()
		case <-ctx.Done():
			return t.reply(), nil
		case <-p.job.ended:
			return t.reply(), nil
		}
	}
	return t.reply(), nil
}

// tapping is one tap.
type tapping struct {
	live     *live
	every    uint64
	limit    uint64
	shown    uint64 // of the goroutine that answers
	columns  []trajectory.Column
	payloads map[string]component.Payload // by signal; of the tap's goroutine
	records  chan control.TapRecord
	file     *recording.File // nil: nothing is recorded

	last map[string]uint64 // sequence by instance and signal; of the tap's goroutine

	mu            sync.Mutex
	seen, skipped uint64
	calls         uint64
}

func (t *tapping) reply() *control.TapReply {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &control.TapReply{Seen: t.seen, Shown: t.shown, Skipped: t.skipped}
	r.Recorded, r.Bytes, _ = t.file.Status()
	return r
}

// fullReply is reply where no more can be recorded.
func (t *tapping) fullReply() (*control.TapReply, error) {
	r := t.reply()
	if _, _, err := t.file.Status(); !errors.Is(err, recording.ErrFull) {
		return nil, control.Errorf(control.CodeFailed, "the recording: %v", err)
	}
	r.Full = true
	return r, nil
}

// message takes one message, on the tap's goroutine.
func (t *tapping) message(signal, from string, m *hostabi.Message, arenas *arena.Set) {
	passed := t.passed(signal, from, m.Sequence)
	t.mu.Lock()
	t.seen += 1 + passed
	t.skipped += passed
	t.calls++
	wanted := (t.calls-1)%t.every == 0
	full := len(t.records) == cap(t.records)
	if wanted && full {
		t.skipped++
	}
	t.mu.Unlock()
	if !wanted || full {
		return
	}
	r := control.TapRecord{
		Signal: signal, From: from, Sequence: m.Sequence, Time: float64(time.Now().UnixMicro()) / 1e6,
		T: m.T, Split: m.Split, PolicyVersion: m.PolicyVersion,
	}
	payload := t.payload(signal)
	if payload.Inline != nil {
		r.Values = payload.Inline(m)
	}
	if payload.Name == component.PayloadEpisode {
		t.played(&r, m)
	}
	if m.Handle != 0 {
		t.block(&r, payload, m, arenas)
	}
	t.file.Keep(signal, payload.Name, payload.OnLoan, m, arenas)
	select {
	case t.records <- r:
	default: // it filled meanwhile
		t.mu.Lock()
		t.skipped++
		t.mu.Unlock()
	}
}

// played adds the policy that played an episode, where several act in the rollout.
func (t *tapping) played(r *control.TapRecord, m *hostabi.Message) {
	r.T = 0 // has that policy's ID
	for _, p := range t.live.Pipeline.Graph().Policies {
		if id := trajectory.EpisodeOf(m).Policy; id != 0 && trajectory.PolicyID(p.Name) == id {
			r.Values["policy"] = p.Name
		}
	}
}

// passed counts the messages of a signal that came while the tap lagged.
func (t *tapping) passed(signal, from string, sequence uint64) (missed uint64) {
	key := from + " " + signal
	if last, ok := t.last[key]; ok && sequence > last+1 {
		missed = sequence - last - 1
	}
	t.last[key] = sequence
	return missed
}

// payload is the payload of a signal.
func (t *tapping) payload(signal string) component.Payload {
	payload, known := t.payloads[signal]
	if known {
		return payload
	}
	name, port, _ := component.SplitQualified(signal)
	if c := t.live.Pipeline.Graph().Component(componentOf(name)); c != nil {
		if i, ok := c.Manifest.Signal(port); ok {
			payload = component.PayloadOf(c.Manifest.Signals[i].Payload)
		}
	}
	t.payloads[signal] = payload
	return payload
}

// block describes the message's block: its name and size, and the requested columns.
func (t *tapping) block(r *control.TapRecord, payload component.Payload, m *hostabi.Message, arenas *arena.Set) {
	r.Handle = m.Handle.String()
	a, err := arenas.Of(m.Handle)
	if err != nil {
		return
	}
	r.Bytes = a.BlockBytes()
	if len(t.columns) == 0 {
		return
	}
	switch {
	case payload.Steps:
		tr, lease, err := trajectory.Lease(arenas, m.Handle)
		if err != nil {
			return // it has been reused: the tap lagged
		}
		r.Columns = columnsOf(tr, t.columns)
		_ = lease.Release() // of this function alone
	case payload.Name == component.PayloadStats:
		lease, err := a.Lease(m.Handle)
		if err != nil {
			return
		}
		if names, ok := a.Schema().(trajectory.Names); ok {
			r.Values = numbersOf(names, lease.Bytes())
		}
		_ = lease.Release()
	}
}

// columnsNamed looks up columns with numbers to show, by their names.
func columnsNamed(names []string) ([]trajectory.Column, error) {
	var list []trajectory.Column
	for _, name := range names {
		c, ok := trajectory.ParseColumn(name)
		if !ok || c == trajectory.MetaColumn {
			known := slices.DeleteFunc(trajectory.ColumnNames(), func(n string) bool { return n == trajectory.MetaColumn.String() })
			return nil, bad("there is no column %q: trajectories have %v", name, known)
		}
		list = append(list, c)
	}
	return list, nil
}

// maxShown bounds the values of one column in a record: a client takes only so much at once.
const maxShown = 1 << 16

// columnsOf copies columns of a trajectory: row after row, in each environment after environment, the first maxShown values.
func columnsOf(tr trajectory.Trajectory, wanted []trajectory.Column) map[string][]float64 {
	columns := map[string][]float64{}
	for _, c := range wanted {
		l, ok := tr.Schema.Layout(c)
		if !ok {
			continue
		}
		values := make([]float64, 0, min(l.Rows*l.Envs*l.Elems, maxShown))
		for row := 0; row < l.Rows && len(values) < maxShown; row++ {
			values = appendRow(values, tr.Row(c, row))
		}
		columns[c.String()] = values
	}
	return columns
}

func appendRow(values []float64, m trajectory.Matrix) []float64 {
	for env := range m.Rows {
		for i := range m.Elems {
			if len(values) == maxShown {
				return values
			}
			values = append(values, element(m, env*m.StrideRow+i*m.StrideElem))
		}
	}
	return values
}

// numbersOf are the numbers of a report by their names.
func numbersOf(names []string, block []byte) map[string]any {
	values := map[string]any{}
	for i, name := range names {
		if 8*i+8 > len(block) {
			break
		}
		values[name] = component.Number(float64At(block, 8*i))
	}
	return values
}
