package hostabi

import (
	"testing"
	"unsafe"
)

func TestLayout_Sizes(t *testing.T) {
	sizes := []struct {
		name      string
		got, want uintptr
	}{
		{"Message", unsafe.Sizeof(Message{}), MessageBytes},
		{"Message.Handle", unsafe.Offsetof(Message{}.Handle), 16},
		{"Message.PolicyVersion", unsafe.Offsetof(Message{}.PolicyVersion), 32},
		{"Message.Inline", unsafe.Offsetof(Message{}.Inline), 48},
		{"Spec", unsafe.Sizeof(Spec{}), SpecBytes},
		{"Spec.Name", unsafe.Offsetof(Spec{}.Name), 104},
		{"GroupDesc", unsafe.Sizeof(GroupDesc{}), GroupBytes},
		{"TensorDesc", unsafe.Sizeof(TensorDesc{}), TensorBytes},
		{"TensorDesc.Low", unsafe.Offsetof(TensorDesc{}.Low), 36},
		{"TensorDesc.Path", unsafe.Offsetof(TensorDesc{}.Path), 64},
		{"ArgDesc", unsafe.Sizeof(ArgDesc{}), ArgBytes},
		{"HostDesc", unsafe.Sizeof(HostDesc{}), HostBytes},
		{"Binding", unsafe.Sizeof(Binding{}), BindingBytes},
		{"ComponentSpec", unsafe.Sizeof(ComponentSpec{}), ComponentSpecBytes},
		{"PortDesc", unsafe.Sizeof(PortDesc{}), PortBytes},
		{"ColumnDesc", unsafe.Sizeof(ColumnDesc{}), ColumnDescBytes},
		{"ComponentMessage", unsafe.Sizeof(ComponentMessage{}), ComponentMessageBytes},
		{"ComponentMessage.Sender", unsafe.Offsetof(ComponentMessage{}.Sender), 44},
		{"ColumnBinding", unsafe.Sizeof(ColumnBinding{}), ColumnBindingBytes},
		{"ColumnBinding.RowAlign", unsafe.Offsetof(ColumnBinding{}.RowAlign), unsafe.Offsetof(Binding{}.RowAlign)},
		{"Identity", unsafe.Sizeof(Identity{}), IdentityBytes},
		{"RequestDesc", unsafe.Sizeof(RequestDesc{}), RequestDescBytes},
		{"RequestCall", unsafe.Sizeof(RequestCall{}), RequestCallBytes},
		{"AnswerCall", unsafe.Sizeof(AnswerCall{}), AnswerCallBytes},
		{"AnswerCall.PlaceAt", unsafe.Offsetof(AnswerCall{}.PlaceAt), 32},
		{"RingHeader", unsafe.Sizeof(RingHeader{}), RingHeaderBytes},
		{"RingHeader.Tail", unsafe.Offsetof(RingHeader{}.Tail), 128},
		{"RingHeader.NotEmpty", unsafe.Offsetof(RingHeader{}.NotEmpty), 384},
		{"RingHeader.EmptyWaits", unsafe.Offsetof(RingHeader{}.EmptyWaits), 768},
		{"RingCell", unsafe.Sizeof(RingCell{}), RingCellHeadBytes},
		{"ArenaHeader", unsafe.Sizeof(ArenaHeader{}), 256},
		{"ArenaHeader.Cursor", unsafe.Offsetof(ArenaHeader{}.Cursor), 128},
		{"ArenaBlock", unsafe.Sizeof(ArenaBlock{}), ArenaBlockBytes},
		{"ArenaBlock.Creditor", unsafe.Offsetof(ArenaBlock{}.Creditor), 16},
	}
	for _, s := range sizes {
		if s.got != s.want {
			t.Errorf("%s: %d bytes, want %d", s.name, s.got, s.want)
		}
	}
}

func TestHandle_RoundTrip(t *testing.T) {
	for _, want := range []struct {
		arena      uint8
		block      uint32
		generation uint64
	}{{0, 0, 1}, {MaxArena, MaxBlock, MaxGeneration}, {3, 5, 7}} {
		h := MakeHandle(want.arena, want.block, want.generation)
		if h.Arena() != want.arena || h.Block() != want.block || h.Generation() != want.generation {
			t.Errorf("MakeHandle(%v) = %v", want, h)
		}
	}
}

func TestTensor_ElemsRefusesOverflow(t *testing.T) {
	d := Tensor{Rank: 3, Shape: [MaxRank]uint32{1 << 31, 1 << 31, 1 << 31}}
	if got := d.Elems(1 << 30); got != 0 {
		t.Errorf("Elems of 2^93 elements = %d, want 0", got)
	}
	d = Tensor{Rank: 2, Shape: [MaxRank]uint32{3, 4}}
	if got := d.Elems(12); got != 12 {
		t.Errorf("Elems = %d, want 12", got)
	}
	d.Rank = MaxRank + 1
	if got := d.Elems(1 << 30); got != 0 {
		t.Errorf("Elems of rank 7 = %d, want 0", got)
	}
}

func TestNames_AreTheUsualForms(t *testing.T) {
	if got := MakeHandle(3, 5, 7).String(); got != "3:5@7" {
		t.Errorf("Handle = %q, want 3:5@7", got)
	}
	if got := (Version{Major: 1, Minor: 2}).String(); got != "1.2" {
		t.Errorf("Version = %q, want 1.2", got)
	}
	if got := Status(-55).String(); got != "status -55, which the ABI does not have" {
		t.Errorf("Status = %q, want status -55", got)
	}
}
