package process

import (
	"log/slog"
	"time"
)

// stages is how long the parts of a start took, one after the other. It belongs to the goroutine that starts.
type stages struct {
	open      time.Duration // rings and wire made, arenas announced
	verify    time.Duration // until the program's sum is known to be right
	execute   time.Duration // until the kernel has executed the program
	hello     time.Duration // until the program has printed its handshake
	dial      time.Duration // until there is a connection
	describe  time.Duration // until it has said what it is
	configure time.Duration // until its component is configured
	start     time.Duration // until its component has started

	since time.Time // end of the last part
}

// part returns how long the part took that ends now.
func (s *stages) part() time.Duration { return s.partUntil(time.Now()) }

func (s *stages) partUntil(now time.Time) time.Duration {
	took := now.Sub(s.since)
	s.since = now
	return took
}

// connected notes the parts that go-plugin sees to, once they are over.
func (s *stages) connected(c *child) {
	s.execute = s.partUntil(c.executed)
	s.hello = s.partUntil(c.hello.at())
	s.dial = s.part()
}

// LogValue is a group of the parts.
func (s stages) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Duration("open", s.open), slog.Duration("verify", s.verify), slog.Duration("execute", s.execute),
		slog.Duration("hello", s.hello), slog.Duration("dial", s.dial), slog.Duration("describe", s.describe),
		slog.Duration("configure", s.configure), slog.Duration("start", s.start),
	)
}
