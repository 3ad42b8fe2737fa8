package arena

import (
	"errors"
	"testing"
)

func TestPeerSet_AttachTakesTheFilesWhateverHappens(t *testing.T) {
	host, peer := NewSet(), NewPeerSet(3, nil)
	a, err := host.Add(Config{Name: "attached", Blocks: 2, BlockBytes: 4096})
	ok(t, err)
	view, err := peer.Attach(sent(t, a))
	ok(t, err)
	if got, err := peer.Of(commit(t, view)); got != view || err != nil {
		t.Errorf("Of = %v, %v, want the attached arena", got, err)
	}
	for name, s := range map[string]*Set{"the same peer": peer, "the host": host} {
		again := sent(t, a)
		if _, err := s.Attach(again); !errors.Is(err, ErrBusy) || open(again.WordsFD) || open(again.DataFD) {
			t.Errorf("Attach by %s = %v, want ErrBusy and closed files", name, err)
		}
	}
}
