package ctest

import (
	"context"
	"strconv"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// BenchmarkEcho sends one message to a program in C and waits for it to come back.
func BenchmarkEcho(b *testing.B) {
	in, out := newMessages(b), newMessages(b)
	start(b, Build(b, Library, "../testdata/interop.c"), []int{in.FD(), out.FD()}, "echo")
	m := make([]hostabi.Message, 1)
	for b.Loop() {
		in.Put(m)
		if !out.Wait(patience) || out.Get(m) != 1 {
			b.Fatal("no answer")
		}
	}
}

// BenchmarkMessages takes messages that a program in C puts one by one, or in batches.
func BenchmarkMessages(b *testing.B) {
	for _, batch := range []int{1, 32} {
		b.Run("by"+strconv.Itoa(batch), func(b *testing.B) {
			r := newMessages(b)
			start(b, Build(b, Library, "../testdata/interop.c"), []int{r.FD()}, "messages-put", "1000000000000", strconv.Itoa(batch))
			ms := make([]hostabi.Message, 64)
			got := 0
			for b.Loop() {
				if got--; got > 0 {
					continue
				}
				if !r.Wait(patience) {
					b.Fatal("no message")
				}
				got = r.Get(ms)
			}
		})
	}
}

// BenchmarkComponent sends a number through the host's bus and link to a component in C and waits for its answer.
func BenchmarkComponent(b *testing.B) {
	program := spawn.Program{Name: "probe", Path: Build(b, Plugin, "../testdata/probe.c")}
	c, err := proxy.New(context.Background(), newRuntime(b), program, "probe")
	if err != nil {
		b.Fatal(err)
	}
	s := plugintest.NewStage(b, c, plugintest.StageOptions{})
	all := bus.Options{Mode: bus.All, Depth: 64, Overflow: bus.Block}
	in, answered := s.To("on_number", false, all), make(chan struct{})
	s.Handle("numbers", all, func(*hostabi.Message) { answered <- struct{}{} })
	for b.Loop() {
		if err := in.Emit(hostabi.Message{}); err != nil {
			b.Fatal(err)
		}
		<-answered
	}
}

// BenchmarkStart starts a plugin in C, asks for its description, and stops it.
func BenchmarkStart(b *testing.B) {
	program := spawn.Program{Name: "probe", Path: Build(b, Plugin, "../testdata/probe.c")}
	for b.Loop() {
		r, err := spawn.New(spawn.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := r.Describe(context.Background(), program); err != nil {
			b.Fatal(err)
		}
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
