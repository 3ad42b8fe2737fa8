package rpc

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"testing"

	"golang.org/x/net/http2"
)

// FuzzConn sends a server any bytes. It must end the connection at their end, and not before they were read or it can
// no longer write.
func FuzzConn(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frames []byte) {
		s := &Server{
			config: Config{Service: "s", MaxCall: 1 << 16, Call: func(_ context.Context, _ string, b []byte) ([]byte, error) { return b, nil }},
			http:   http.Server{ErrorLog: log.New(io.Discard, "", 0)},
			over:   make(chan struct{}),
		}
		ours, theirs := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, ours) }()
		go func() {
			_, _ = io.WriteString(ours, http2.ClientPreface)
			_, _ = ours.Write(frames)
			_ = ours.Close()
		}()
		s.serve(theirs)
	})
}
