package spawn

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// maxHello is the most bytes that a plugin's first line may have.
const maxHello = 4096

// handshake keeps the first line that a program prints: go-plugin's handshake line, or another in its place.
type handshake struct {
	mu    sync.Mutex
	line  []byte
	whole bool          // the line is complete, or there will be no more of it
	ready chan struct{} // closed when whole
	given int
	since time.Time // when it was whole
}

func newHandshake() *handshake { return &handshake{ready: make(chan struct{})} }

// Write takes the program's output.
func (h *handshake) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.whole {
		return len(b), nil
	}
	line, _, found := bytes.Cut(b, []byte("\n"))
	h.line = append(h.line, line[:min(len(line), maxHello-len(h.line))]...)
	if found || len(h.line) == maxHello {
		h.finish()
	}
	return len(b), nil
}

// end says that the program prints no more.
func (h *handshake) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.whole {
		h.finish()
	}
}

// finish, with mu held, lets readers have the line.
func (h *handshake) finish() {
	h.whole, h.since = true, time.Now()
	close(h.ready)
}

// Read waits for the line and gives it to go-plugin, then io.EOF.
func (h *handshake) Read(b []byte) (int, error) {
	<-h.ready
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.given == len(h.line) {
		return 0, io.EOF
	}
	n := copy(b, h.line[h.given:])
	h.given += n
	return n, nil
}

// at returns when the line was whole.
func (h *handshake) at() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since
}

// text returns the line so far.
func (h *handshake) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.line)
}
