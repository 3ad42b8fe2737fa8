package loops

import (
	"context"
	"testing"

	"github.com/rlhost/rlhost/core/place"
	"github.com/rlhost/rlhost/hostabi"
)

// BenchmarkPlace_PingPong is a message from one loop to another and back, without places and with: W113 has what it costs.
func BenchmarkPlace_PingPong(b *testing.B) {
	all, err := place.Available()
	if err != nil {
		b.Fatal(err)
	}
	for name, cores := range map[string]string{"anywhere": "", "placed": all.String()} {
		b.Run(name, func(b *testing.B) {
			s := &Set{OnError: func() { b.Error("a loop has failed") }}
			ping, pong := s.Join("ping"), s.Join("pong")
			s.Place(func(string) string { return cores }, func(loop string, err error) { b.Errorf("%s: %v", loop, err) })
			ended := make(chan error, 1)
			go func() { ended <- s.Run(context.Background()) }()
			back := make(chan struct{})
			left := 0
			var there, here func(*hostabi.Message)
			here = func(*hostabi.Message) {
				if left--; left == 0 {
					close(back)
					return
				}
				pong.Own.Post(there, hostabi.Message{})
			}
			there = func(*hostabi.Message) { ping.Own.Post(here, hostabi.Message{}) }
			b.ResetTimer()
			ping.Own.Post(func(*hostabi.Message) { left = b.N + 1; here(nil) }, hostabi.Message{})
			<-back
			b.StopTimer()
			s.End()
			if err := <-ended; err != nil {
				b.Error(err)
			}
		})
	}
}

// A loop that has ended, or has not begun, is placed without harm; a text that is no set of processors is told.
func TestPlace_TellsWhatCannotBe(t *testing.T) {
	s := &Set{OnError: func() {}}
	l := s.Join("one")
	told := make(chan string, 1)
	s.Place(func(string) string { return "1023" }, func(loop string, err error) { told <- loop })
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	if all, err := place.Available(); err == nil && len(all) < place.MaxCores {
		if got := <-told; got != l.Name() {
			t.Errorf("told of %q", got)
		}
	}
	s.End()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.Place(func(string) string { return "" }, func(string, error) { t.Error("an ended loop is placed") })
}
