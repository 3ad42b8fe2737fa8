package shm

import (
	"errors"
	"time"
)

// Network is package net's name of the connections of sockets: SOCK_SEQPACKET, which keeps message boundaries and
// reports when the other end closes.
const Network = "unixpacket"

// MaxFiles is the most files that one Send can attach.
const MaxFiles = 2

// SendTimeout is how long Send waits for room at first; see SetSendTimeout.
const SendTimeout = 10 * time.Second

// Errors of sockets.
var (
	// ErrTooLarge: the document has more bytes than the receiver's buffer or the system's, or more files than
	// MaxFiles came with it.
	ErrTooLarge = errors.New("too large for one datagram")
	// ErrEmpty: a datagram without a document, which no Send makes.
	ErrEmpty = errors.New("empty datagram")
)
