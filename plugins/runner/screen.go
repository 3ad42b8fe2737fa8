package runner

import (
	"bytes"
	"io"
	"sync"
)

// Screen is a terminal with one live line at its end, which is redrawn in place. Other output goes above it.
// All methods may be called from any goroutine.
type Screen struct {
	mu   sync.Mutex
	out  io.Writer
	live string // the live line; empty = there is none
	open bool   // the last write does not end with a newline
}

// clearLine takes the cursor to the start of the line and clears it.
const clearLine = "\r\x1b[K"

// NewScreen returns a screen without a live line.
func NewScreen(out io.Writer) *Screen { return &Screen{out: out} }

// Write writes p above the live line.
func (s *Screen) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	if s.live != "" && !s.open {
		b.WriteString(clearLine)
	}
	b.Write(p)
	s.open = p[len(p)-1] != '\n'
	if s.live != "" && !s.open {
		b.WriteString(s.live)
	}
	if _, err := s.out.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Live replaces the live line. It has no newline and fits the width.
func (s *Screen) Live(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	start := clearLine
	if s.open {
		start, s.open = "\n", false
	}
	s.live = line
	// A lost terminal must not end training.
	_, _ = io.WriteString(s.out, start+line)
}

// Leave ends the live line; its last text stays.
func (s *Screen) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == "" {
		return
	}
	s.live = ""
	if !s.open {
		_, _ = io.WriteString(s.out, "\n")
	}
}
