package rpc

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
)

// FuzzCall makes a call with any path and body: what HTTP/2 leaves to this package. It answers with a status, and the method gets
// what the message holds or nothing.
func FuzzCall(f *testing.F) {
	f.Add("/s/method", []byte{0, 0, 0, 0, 0})
	f.Add("/s/method", []byte{0, 0, 0, 0, 2, 10, 0})
	f.Add("/s/method", []byte{0, 255, 255, 255, 255})
	f.Add(healthCheck, []byte(nil))
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		if path == stdioStream || path == brokerStream {
			t.Skip("it lasts until the end")
		}
		s := &Server{over: make(chan struct{})}
		s.config = Config{Service: "s", MaxCall: 1 << 16, Call: func(_ context.Context, _ string, request []byte) ([]byte, error) {
			if len(request) > len(body) {
				t.Errorf("a request of %d bytes in a body of %d", len(request), len(body))
			}
			return request, nil
		}}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		r.URL.Path = path
		s.ServeHTTP(w, r)
		if status := w.Header()[http.TrailerPrefix+"Grpc-Status"]; len(status) != 1 || w.Code != http.StatusOK {
			t.Errorf("status %q, code %d", status, w.Code)
		}
		if w.Body.Len() == 0 {
			return
		}
		if _, err := read(w.Body, 1<<17); err != nil || w.Body.Len() > 0 {
			t.Errorf("the answer is no message: %v, %d bytes more", err, w.Body.Len())
		}
	})
}
