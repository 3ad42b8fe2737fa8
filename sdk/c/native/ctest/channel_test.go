package ctest

import (
	"context"
	"testing"

	"github.com/rlhost/rlhost/core/channel"
	channels "github.com/rlhost/rlhost/core/channel/remote"
	"github.com/rlhost/rlhost/internal/testkit"
)

// serveChannel serves a channel for a program in C and returns the server and its name.
func serveChannel(t *testing.T, items int) (*channels.Server, string) {
	t.Helper()
	testkit.Sockets(t)
	const name = "jobs"
	s, err := channels.Serve(channels.Options{Name: name, Limits: channel.Limits{Items: items, Bytes: 8 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // a test may have closed it
	return s, name
}

func TestChannel_ServesProgramsInC(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/channel.c")
	s, name := serveChannel(t, 2)
	start(t, program, nil, "all", name).wait(t)
	got, err := s.Channel().TryGet(t.Context(), "left")
	if err != nil || got.Weight != 2.5 || len(got.Data) != 100_000 || string(got.Data[:3]) != "qrs" {
		t.Errorf("%d bytes of weight %v, %v", len(got.Data), got.Weight, err)
	}
	s.Release(got)
	if stat := s.Channel().Now("k"); stat.Lost != 0 || stat.Key.Items != 1 {
		t.Errorf("%+v: nothing is lost where a client ends in order", stat)
	}
	start(t, program, nil, "close", name).wait(t)
	if !s.Channel().Now("").Closed {
		t.Error("the channel is not closed")
	}
}

func TestChannel_BatchesThatFitNoFrame(t *testing.T) {
	_, name := serveChannel(t, 0)
	start(t, Build(t, Sanitized, "../testdata/channel.c"), nil, "many", name).wait(t)
}

func TestChannel_EndsTheWaitsOfProgramsInC(t *testing.T) {
	program := Build(t, Sanitized, "../testdata/channel.c")
	for what, end := range map[string]func(*channels.Server) error{
		"the channel is closed": func(s *channels.Server) error { return s.Channel().Stop(context.Background()) },
		"its server ends":       (*channels.Server).Close,
	} {
		t.Run(what, func(t *testing.T) {
			s, name := serveChannel(t, 2)
			p := start(t, program, nil, "wait", name)
			testkit.Until(t, "the program waits", func() bool { return s.Channel().Now("").WaitingGets == 1 })
			if err := end(s); err != nil {
				t.Fatal(err)
			}
			p.wait(t)
		})
	}
}

// TestChannel_CountsWhatAKilledProgramHeld kills one that waits: what it waited for stays.
func TestChannel_CountsWhatAKilledProgramHeld(t *testing.T) {
	s, name := serveChannel(t, 2)
	p := start(t, Build(t, Library, "../testdata/channel.c"), nil, "wait", name)
	testkit.Until(t, "the program waits", func() bool { return s.Channel().Now("").WaitingGets == 1 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "its wait ends", func() bool { return s.Channel().Now("").WaitingGets == 0 })
	if err := s.Channel().TryPut(t.Context(), "never", channel.Item{Weight: 1}); err != nil {
		t.Fatal(err)
	}
	if stat := s.Channel().Now("never"); stat.Key.Items != 1 || stat.Lost != 0 {
		t.Errorf("%+v, want the item in the channel", stat)
	}
}

// TestChannel_CountsABatchOfADeadProgram: it has copied one of the items from its region and given that back, and has said of none that it
// has used it.
func TestChannel_CountsABatchOfADeadProgram(t *testing.T) {
	s, name := serveChannel(t, 0)
	start(t, Build(t, Library, "../testdata/channel.c"), nil, "die", name).wait(t)
	testkit.Until(t, "its items are lost", func() bool { return s.Channel().Now("").Lost > 0 })
	if now := s.Channel().Now(""); now.Lost != 2 {
		t.Errorf("%d items are lost of 2", now.Lost)
	}
}
