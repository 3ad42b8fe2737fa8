package ipc

import (
	"fmt"
	"net"
	"os"
)

// Peer is the process at the other end of a connection, as the system saw it when it connected or listened.
type Peer struct {
	UID, PID int
}

// CheckPeer returns the peer of a connection, and an error if it is not this user's. Root is no exception: only a
// process's own user may query it.
func CheckPeer(conn *net.UnixConn) (Peer, error) {
	peer, err := peerOf(conn)
	if err == nil && peer.UID != os.Geteuid() {
		err = fmt.Errorf("user %d is at this end, user %d at the other", os.Geteuid(), peer.UID)
	}
	return peer, err
}
