package control

import (
	"context"
	"net"
)

// Peer is who made a request: the process at the other end of the socket, as the system saw it when it connected.
type Peer struct {
	UID, PID int
}

type peerKey struct{}

func withPeer(ctx context.Context, conn net.Conn) context.Context {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return ctx
	}
	peer, err := peerOf(socket)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peer)
}

// PeerOf returns who made the request that ctx is of. ok is false for another context.
func PeerOf(ctx context.Context) (p Peer, ok bool) {
	p, ok = ctx.Value(peerKey{}).(Peer)
	return p, ok
}
