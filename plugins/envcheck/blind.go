package envcheck

import (
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
)

// blind keeps an environment from reading its own output: canaries lie over it during a step.
type blind struct {
	canaries []byte // of the guest's region
	kept     []byte // the observed row, for the host
}

// cover lays the canaries over everything that the environments have written.
func (b *blind) cover(tr trajectory.Trajectory, row int) {
	b.kept = b.kept[:0]
	for _, l := range tr.Schema.Columns() {
		if !written(l) {
			continue
		}
		if l.Flags&trajectory.Observed != 0 {
			b.kept = append(b.kept, rowOf(tr, l, row)...)
		}
		if b.canaries == nil {
			b.fill(tr)
		}
		copy(tr.Mem[l.Offset:l.Offset+l.Bytes], b.canaries[l.Offset:])
	}
}

// uncover puts the observed row back.
func (b *blind) uncover(tr trajectory.Trajectory, row int) {
	at := 0
	for _, l := range tr.Schema.Columns() {
		if written(l) && l.Flags&trajectory.Observed != 0 {
			at += copy(rowOf(tr, l, row), b.kept[at:])
		}
	}
}

// fill makes the canaries, one in each element.
func (b *blind) fill(tr trajectory.Trajectory) {
	b.canaries = make([]byte, tr.Schema.GuestBytes)
	for _, l := range tr.Schema.Columns() {
		for i := 0; written(l) && i < l.Bytes; i += l.DType.Bytes() {
			copy(b.canaries[l.Offset+i:l.Offset+l.Bytes], canary[:l.DType.Bytes()])
		}
	}
}

// written reports whether the environments write a column.
func written(l trajectory.Layout) bool {
	return l.Flags&trajectory.Guest != 0 && l.Flags&(trajectory.Observed|trajectory.Outcome|trajectory.Final|trajectory.AtBegin) != 0
}

// rowOf returns the bytes of a row of a column.
func rowOf(tr trajectory.Trajectory, l trajectory.Layout, row int) []byte {
	at := l.Offset + row*l.StrideT
	return tr.Mem[at : at+l.RowBytes]
}

// readsNothing compares with a trace in which nothing can be read that was written before.
func (k *checker) readsNothing() (Verdict, string, error) {
	t, err := k.record(run{envs: k.o.Envs, seed: k.o.Seed, blind: true})
	if err != nil {
		return Failed, "", fmt.Errorf("other values lie over what it wrote before each step: %w", err)
	}
	if env, step, differ := k.base.differ(t, k.o.Envs); differ {
		return Failed, fmt.Sprintf("other values lie over what it wrote before each step, and env %d differs from %s on", env, step), nil
	}
	return OK, "bit-equal where other values lie over what it wrote, before each step", nil
}

// advanceBlind steps the environments while none can read its own output.
func (w *recorder) advanceBlind() error {
	tr, row := w.driver.Acting()
	w.blind.cover(tr, row)
	_, err := w.driver.Step()
	w.blind.uncover(tr, row)
	return err
}
