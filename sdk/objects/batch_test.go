package objects

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/objects/wire"
)

// indices returns the indices of a batch's entries; each entry contains its own.
func indices(t *testing.T, b *Batch) []uint64 {
	t.Helper()
	var list []uint64
	for i := range b.Len() {
		e := b.Entry(i)
		got, err := View[uint64](e, 0)
		if err != nil || len(got) != 1 || got[0] != e.Index() {
			t.Errorf("entry %d holds %v, %v", e.Index(), got, err)
		}
		list = append(list, e.Index())
	}
	return list
}

func TestBatchRange_ClaimsTheOldestFromAnIndexOn(t *testing.T) {
	s := dial(t, serve(t).Path())
	create(t, s, "x", 8, 8)
	for i := range uint64(6) {
		push(t, s, "x", []uint64{i})
	}
	if err := s.Delete(t.Context(), "x", 3, false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from uint64
		most int
		want []uint64
	}{
		{0, 2, []uint64{0, 1}},
		{0, 100, []uint64{0, 1, 2, 4, 5}},
		{2, 2, []uint64{2, 4}},
		{3, 1, []uint64{4}}, // 3 is gone
		{5, 1, []uint64{5}},
		{4, 1 << 32, []uint64{4, 5}},
	} {
		b, err := s.BatchRange(t.Context(), "x", c.from, c.most)
		if err != nil {
			t.Errorf("from %d at most %d: %v", c.from, c.most, err)
			continue
		}
		if got := indices(t, b); !slices.Equal(got, c.want) {
			t.Errorf("from %d at most %d: entries %v, want %v", c.from, c.most, got, c.want)
		}
		if err := b.Release(); err != nil {
			t.Errorf("Release = %v", err)
		}
		if err := b.Release(); !errors.Is(err, ErrSpent) {
			t.Errorf("second Release = %v, want ErrSpent", err)
		}
	}
	if _, err := s.BatchRange(t.Context(), "x", 6, 1); !errors.Is(err, ErrNoEntry) {
		t.Errorf("from the one that is still to come = %v, want ErrNoEntry", err)
	}
	for _, most := range []int{0, -1} {
		if _, err := s.BatchRange(t.Context(), "x", 0, most); !errors.Is(err, wire.ErrRequest) {
			t.Errorf("a batch of %d = %v, want ErrRequest", most, err)
		}
	}
	settled(t, s, "x", 1)
}

func TestBatch_HoldsItsEntriesUntilItIsReleased(t *testing.T) {
	s := dial(t, serve(t).Path())
	create(t, s, "x", 4, 8)
	for i := range uint64(4) {
		push(t, s, "x", []uint64{i})
	}
	b, err := s.BatchRange(t.Context(), "x", 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "x", 2, false); !errors.Is(err, ErrBusy) {
		t.Errorf("Delete of an entry of a batch = %v, want ErrBusy", err)
	}
	if got, want := indices(t, b), []uint64{1, 2}; !slices.Equal(got, want) {
		t.Errorf("entries %v, want %v", got, want)
	}
	e := b.Entry(1)
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	if e.Bytes(0) != nil {
		t.Error("an entry has bytes after the release of its batch")
	}
	settled(t, s, "x", 1)
	if err := s.Delete(t.Context(), "x", 2, false); err != nil {
		t.Errorf("Delete after the release = %v", err)
	}
}
