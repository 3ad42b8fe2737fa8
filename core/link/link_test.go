package link

import (
	"context"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/hostabi"
)

// BenchmarkRoundTrip goes from a signal of the host through a link to a plugin's slot, which answers through its
// own link to a slot of the host.
func BenchmarkRoundTrip(b *testing.B) {
	toPlugin, err := ring.NewMessages("to", hostabi.LinkCells)
	if err != nil {
		b.Fatal(err)
	}
	toHost, err := ring.NewMessages("from", hostabi.LinkCells)
	if err != nil {
		b.Fatal(err)
	}
	hostLoop, pluginLoop := loop.New("host"), loop.New("plugin")
	arenas := arena.NewSet()

	// The host: an asker, and the proxy.
	asker, proxy := hostLoop.NewReceiver("asker"), hostLoop.NewReceiver("proxy")
	request := bus.NewSignal(asker, "request", "x", nil)
	answer := bus.NewSignal(proxy, "answer", "x", nil)
	var host, plugin *Link
	toLink := bus.NewSlot(proxy, "in", "x", func(m *hostabi.Message) {
		if err := host.Send(0, m); err != nil {
			b.Error(err)
		}
	})
	host, err = New(Config{Name: "host", Out: toPlugin, In: toHost, Host: true, Sends: []Port{{}}, Receives: []Port{{}},
		Arenas: arenas, Receiver: proxy, Limit: func(int) int { return 64 },
		Deliver: func(_ int, m *hostabi.Message) error { return answer.Emit(*m) },
		Control: func(*hostabi.Message) error { return nil },
		Fault:   func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	left := 0
	back := bus.NewSlot(asker, "back", "x", func(m *hostabi.Message) {
		if left--; left == 0 {
			close(done)
			return
		}
		_ = request.Emit(*m)
	})
	connect(b, request, toLink)
	connect(b, answer, back)

	// The plugin.
	comp, ears := pluginLoop.NewReceiver("component"), pluginLoop.NewReceiver("link")
	out := bus.NewSignal(comp, "answer", "x", nil)
	leave := bus.NewSlot(ears, "leave", "x", func(m *hostabi.Message) { _ = plugin.Send(0, m) })
	connect(b, out, leave)
	plugin, err = New(Config{Name: "plugin", Out: toHost, In: toPlugin, Sends: []Port{{}}, Receives: []Port{{}},
		Arenas: arenas, Receiver: comp, Window: hostabi.LinkWindow,
		Deliver: func(_ int, m *hostabi.Message) error { return out.Emit(*m) },
		Control: func(*hostabi.Message) error { return nil },
		Fault:   func(err error) { b.Error(err) }})
	if err != nil {
		b.Fatal(err)
	}
	host.Start()
	plugin.Start()
	for _, l := range []*loop.Loop{hostLoop, pluginLoop} {
		go func() { _ = l.Run(context.Background()) }()
	}
	b.ReportAllocs()
	for b.Loop() {
		left = 100
		done = make(chan struct{})
		_ = request.Emit(hostabi.Message{T: 1})
		<-done
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/trip")
	host.Stop()
	plugin.Stop()
	hostLoop.Stop()
	pluginLoop.Stop()
	b.Logf("%+v", host.Stats())
	b.Logf("%+v", plugin.Stats())
	_ = time.Now
}

func connect(b testing.TB, s *bus.Signal, to *bus.Slot) {
	b.Helper()
	if _, err := bus.Connect(s, to, bus.Options{Depth: 64}); err != nil {
		b.Fatal(err)
	}
}
