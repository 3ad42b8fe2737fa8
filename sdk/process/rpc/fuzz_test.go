package rpc

import (
	"context"
	"io"
	"net"
	"testing"
)

// FuzzConn sends a server whatever comes. It must end the connection at the end of it, not before everything was read
// or written for good.
func FuzzConn(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frames []byte) {
		s := &Server{
			config: Config{Service: "s", MaxCall: 1 << 16, Call: func(_ context.Context, _ string, b []byte) ([]byte, error) { return b, nil }},
			over:   make(chan struct{}),
		}
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		go func() {
			_, _ = io.WriteString(ours, preface)
			_, _ = ours.Write(frames)
			_ = ours.Close()
		}()
		newConn(s, theirs).serve()
	})
}
