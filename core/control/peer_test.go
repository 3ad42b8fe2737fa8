package control

import (
	"context"
	"os"
	"testing"

	"github.com/rlhost/rlhost/core/ipc"
)

func TestPeerOf_TellsWhoAsks(t *testing.T) {
	v := Verbs{}
	On(v, VerbStatus, func(ctx context.Context, _ StatusRequest, _ Notice) (ipc.Peer, error) {
		peer, ok := PeerOf(ctx)
		if !ok {
			t.Error("the peer is not known")
		}
		return peer, nil
	})
	path, _ := serve(t, v)
	var got ipc.Peer
	if err := dial(t, path).Do(t.Context(), VerbStatus, StatusRequest{}, &got, nil); err != nil {
		t.Fatal(err)
	}
	if want := (ipc.Peer{UID: os.Geteuid(), PID: os.Getpid()}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, ok := PeerOf(t.Context()); ok {
		t.Error("a context of nobody's request has a peer")
	}
}
