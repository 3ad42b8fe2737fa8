package spawn

import (
	"log/slog"
	"time"
)

// Stages is how long the parts of a start took, one after the other. It belongs to the goroutine that starts.
type Stages struct {
	Open      time.Duration // rings and wire made, arenas announced
	Verify    time.Duration // until the program's sum is known to be right
	Execute   time.Duration // until the kernel has executed the program
	Hello     time.Duration // until the program has printed its handshake
	Dial      time.Duration // until there is a connection
	Describe  time.Duration // until it has described itself
	Configure time.Duration // until its component is configured
	Start     time.Duration // until its component has started

	Since time.Time // end of the last part
}

// Part returns how long the part took that ends now.
func (s *Stages) Part() time.Duration { return s.partUntil(time.Now()) }

func (s *Stages) partUntil(now time.Time) time.Duration {
	took := now.Sub(s.Since)
	s.Since = now
	return took
}

// connected notes the times of go-plugin's own parts, once they are over.
func (s *Stages) connected(c *child) {
	s.Execute = s.partUntil(c.executed)
	s.Hello = s.partUntil(c.hello.at())
	s.Dial = s.Part()
}

// LogValue is a group of the parts.
func (s Stages) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Duration("open", s.Open), slog.Duration("verify", s.Verify), slog.Duration("execute", s.Execute),
		slog.Duration("hello", s.Hello), slog.Duration("dial", s.Dial), slog.Duration("describe", s.Describe),
		slog.Duration("configure", s.Configure), slog.Duration("start", s.Start),
	)
}
