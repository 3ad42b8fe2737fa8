// Package ipc is a Unix socket for the processes of one user on one machine: who may connect, how many at a time, and how
// serving ends. What the two ends say to each other is its callers' business.
//
//	s, err := ipc.Listen(ipc.Config{Name: "objects", Path: path, Network: "unixpacket", Clients: 64, Serve: serve, Refuse: refuse})
//	defer s.Close()
//
// The socket has mode 0600 and lies in a folder that nobody else may enter; the system says who is at the other end of
// a connection, and only this user is served, root being another user like any. A lock beside the socket tells a socket
// that a killed process has left from one in use.
package ipc
