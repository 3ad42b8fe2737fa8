package arena_test

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/hostabi"
)

func TestCommitted_AreTheBlocksThatSomebodyReads(t *testing.T) {
	set := arena.NewSet()
	a, err := set.Add(arena.Config{Name: "a", Blocks: 4, BlockBytes: 64})
	if err != nil {
		t.Fatal(err)
	}
	committed := func() (list []hostabi.Handle) {
		a.Committed(func(h hostabi.Handle) { list = append(list, h) })
		return list
	}
	var handles []hostabi.Handle
	for block := range uint32(3) {
		loan, err := a.LoanBlock(block)
		if err != nil {
			t.Fatal(err)
		}
		if got := committed(); !slices.Equal(got, handles) {
			t.Errorf("with block %d on loan: %v, want %v", block, got, handles)
		}
		h, err := loan.Commit()
		if err != nil {
			t.Fatal(err)
		}
		handles = append(handles, h)
	}
	if err := a.Retain(handles[1]); err != nil {
		t.Fatal(err)
	}
	for _, h := range handles {
		if err := a.Release(h); err != nil {
			t.Fatal(err)
		}
	}
	if got := committed(); !slices.Equal(got, handles[1:2]) {
		t.Errorf("with one claim left: %v, want %v", got, handles[1:2])
	}
	if err := a.Release(handles[1]); err != nil {
		t.Fatal(err)
	}
	if got := committed(); len(got) != 0 {
		t.Errorf("all free: %v", got)
	}
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if got := committed(); len(got) != 0 {
		t.Errorf("closed: %v", got)
	}
}
