package arena

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

func TestLayout_IsThatOfTheABI(t *testing.T) {
	var (
		h header
		b blockHeader
		H hostabi.ArenaHeader
		B hostabi.ArenaBlock
	)
	for _, f := range []struct {
		name      string
		got, want uintptr
	}{
		{"magic", unsafe.Offsetof(h.magic), unsafe.Offsetof(H.Magic)},
		{"version", unsafe.Offsetof(h.version), unsafe.Offsetof(H.Version)},
		{"arena", unsafe.Offsetof(h.arena), unsafe.Offsetof(H.Arena)},
		{"blocks", unsafe.Offsetof(h.blocks), unsafe.Offsetof(H.Blocks)},
		{"blockBytes", unsafe.Offsetof(h.blockBytes), unsafe.Offsetof(H.BlockBytes)},
		{"stride", unsafe.Offsetof(h.stride), unsafe.Offsetof(H.Stride)},
		{"hintsAt", unsafe.Offsetof(h.hintsAt), unsafe.Offsetof(H.HintsAt)},
		{"wordsTotal", unsafe.Offsetof(h.wordsTotal), unsafe.Offsetof(H.WordsTotal)},
		{"dataTotal", unsafe.Offsetof(h.dataTotal), unsafe.Offsetof(H.DataTotal)},
		{"first", unsafe.Offsetof(h.first), unsafe.Offsetof(H.First)},
		{"cursor", unsafe.Offsetof(h.cursor), unsafe.Offsetof(H.Cursor)},
		{"header", unsafe.Sizeof(h), unsafe.Sizeof(H)},
		{"word", unsafe.Offsetof(b.word), unsafe.Offsetof(B.Word)},
		{"aborts", unsafe.Offsetof(b.aborts), unsafe.Offsetof(B.Aborts)},
		{"creditor", unsafe.Offsetof(b.creditor), unsafe.Offsetof(B.Creditor)},
		{"block", unsafe.Sizeof(b), unsafe.Sizeof(B)},
		{"bytes of a block", unsafe.Sizeof(b), hostabi.ArenaBlockBytes},
		{"local", unsafe.Sizeof(local{}), 64},
	} {
		if f.got != f.want {
			t.Errorf("%s: %d, want %d", f.name, f.got, f.want)
		}
	}
	if hostabi.GenerationBits+hostabi.ArenaStateBits+hostabi.ArenaHolderBits != 64 {
		t.Error("the fields of a word do not fill it")
	}
}

func TestNew_HeaderTellsTheLayout(t *testing.T) {
	a := small(t, 3)
	if err := a.view.checkDescribed(a.layout, a.ID()); err != nil {
		t.Error(err)
	}
	l := a.layout
	if l.hintsAt != hostabi.ArenaBlocksAt+3*hostabi.ArenaBlockBytes || l.words%shm.PageSize() != 0 ||
		l.stride != shm.PageSize() || l.data != 3*l.stride {
		t.Errorf("layout %+v of 3 blocks of 100 bytes", l)
	}
}

func TestCheckDescribed_NamesWhatDiffers(t *testing.T) {
	for name, spoil := range map[string]func(*header){
		"magic":            func(h *header) { h.magic.Store(1) },
		"version":          func(h *header) { h.version++ },
		"id":               func(h *header) { h.arena = 8 },
		"blocks":           func(h *header) { h.blocks-- },
		"block bytes":      func(h *header) { h.blockBytes = 1 << 63 },
		"stride":           func(h *header) { h.stride = 0 },
		"hints":            func(h *header) { h.hintsAt = 1<<64 - 8 },
		"words":            func(h *header) { h.wordsTotal = 0 },
		"data":             func(h *header) { h.dataTotal++ },
		"first":            func(h *header) { h.first = 0 },
		"first of no word": func(h *header) { h.first = hostabi.MaxGeneration + 1 },
	} {
		a := small(t, 3)
		spoil(a.view.header)
		if err := a.view.checkDescribed(a.layout, a.ID()); !errors.Is(err, ErrLayout) {
			t.Errorf("header with another %s: %v, want ErrLayout", name, err)
		}
	}
}
