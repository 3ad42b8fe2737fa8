// Package ipc is a Unix socket for the processes of one user on one machine: who may connect, how many at a time, and
// how serving ends. The protocol is up to its callers.
//
//	s, err := ipc.Listen(ipc.Config{Name: "objects", Path: path, Network: "unixpacket", Clients: 64, Serve: serve, Refuse: refuse})
//	defer s.Close()
//
// The socket has mode 0600 and is in a folder that no other user may enter; the system reports the peer's user, and
// only this user is served, root not excepted. A lock file next to the socket distinguishes a socket left by a killed
// process from one in use.
package ipc
