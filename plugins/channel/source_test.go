package channel

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
	core "github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/channel/remote"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// put puts an item as a program beside the run does.
func put(t *testing.T, key string, weight float64, data []byte) {
	t.Helper()
	client, err := remote.Connect("jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Put(t.Context(), key, core.Item{Weight: weight, Data: data}); err != nil {
		t.Fatal(err)
	}
}

// number is an int as rlhost.plain in Python has it.
func number(n int64) []byte { return binary.LittleEndian.AppendUint64([]byte{'i'}, uint64(n)) }

// field is a key of a dict with its value: a uint64, a float64 or a bool.
type field struct {
	name  string
	value any
}

// appendDict appends a dict as rlhost.plain in Python has it.
func appendDict(data []byte, fields []field) []byte {
	data = binary.LittleEndian.AppendUint32(append(data, '{'), uint32(len(fields)))
	for _, f := range fields {
		data = binary.LittleEndian.AppendUint32(append(data, 's'), uint32(len(f.name)))
		data = append(data, f.name...)
		switch v := f.value.(type) {
		case uint64:
			data = append(data, number(int64(v))...)
		case float64:
			data = binary.LittleEndian.AppendUint64(append(data, 'f'), math.Float64bits(v))
		case bool:
			data = append(data, map[bool]byte{true: 'T', false: 'F'}[v])
		}
	}
	return data
}

func TestSource_ItemsBecomeEpisodes(t *testing.T) {
	r, c := newRig(t, func(c *config) {
		c.Gives, c.Keys, c.Key, c.Weight = component.PayloadEpisode, []string{"3", "5"}, "env", "length"
	})
	var got []hostabi.Message
	r.From("get", func(m *hostabi.Message) { got = append(got, *m) })
	put(t, "5", 12, appendDict(nil, []field{{"return", -1.5}, {"agent", uint64(2)}, {"terminated", true}, {"policy_version", uint64(9)}}))
	r.MustRun(func() bool { return len(got) == 1 })
	want := trajectory.Episode{Return: -1.5, Length: 12, Env: 5, Agent: 2, Terminated: true}
	if e := trajectory.EpisodeOf(&got[0]); e != want || got[0].PolicyVersion != 9 {
		t.Errorf("%+v of version %d, want %+v of 9", e, got[0].PolicyVersion, want)
	}
	for n, wrong := range []struct {
		weight float64
		data   []byte
		text   string
	}{
		{1, []byte{'{', 1}, "it ends"},
		{1, number(3), "a dict"},
		{1, appendDict(nil, []field{{"length", uint64(1)}}), "return is <nil>, want a number"},
		{1.5, appendDict(nil, []field{{"return", 1.0}}), "length is 1.5, want a whole number from 0"},
		{1, appendDict(nil, []field{{"return", math.NaN()}}), "return is NaN, want a number up to"},
		{1, appendDict(nil, []field{{"return", 1.0}, {"reward", 1.0}}), `it has \"reward\", which an episode has not`},
		{1, appendDict(nil, []field{{"return", 1.0}, {"agent", uint64(1 << 15)}}), "agent is 32768, want a number up to 32767"},
		{1, append(appendDict(nil, []field{{"return", 1.0}}), 0), "there are 1 bytes more"},
	} {
		put(t, "3", wrong.weight, wrong.data)
		r.MustRun(func() bool { return c.source.refused.Value() == uint64(n+1) })
		if !strings.Contains(r.Log.String(), wrong.text) {
			t.Errorf("the log does not say %q:\n%s", wrong.text, r.Log.String())
		}
	}
	put(t, "3", 1, appendDict(nil, []field{{"return", 2.0}}))
	r.MustRun(func() bool { return len(got) == 2 })
}

func TestSource_ItemsBecomeMessagesOfAnyPayload(t *testing.T) {
	r, c := newRig(t, func(c *config) { c.Gives, c.Keys = "job", []string{"a", "b"} })
	var got []hostabi.Message
	r.From("get", func(m *hostabi.Message) { got = append(got, *m) })
	pi := math.Float64bits(math.Pi)
	for n, item := range []struct {
		key  string
		data []byte
		want [2]uint64
		t    uint32
	}{
		{"a", number(-7), [2]uint64{^uint64(6), math.Float64bits(2)}, 0},
		{"b", binary.LittleEndian.AppendUint64([]byte{'f'}, pi), [2]uint64{pi, math.Float64bits(2)}, 1},
		{"b", append([]byte{'b', 9, 0, 0, 0}, "123456789"...), [2]uint64{0x3837363534333231, '9'}, 1},
	} {
		put(t, item.key, 2, item.data)
		r.MustRun(func() bool { return len(got) == n+1 })
		if got[n].Inline != item.want || got[n].T != item.t {
			t.Errorf("%v of %d, want %v of %d", got[n].Inline, got[n].T, item.want, item.t)
		}
	}
	for n, wrong := range []string{"s\x01\x00\x00\x00x", "b\x11\x00\x00\x00" + strings.Repeat("x", 17), "b\xff\xff\xff\xff", "?", strings.Repeat("x", remote.MaxInline+1)} {
		put(t, "a", 1, []byte(wrong))
		r.MustRun(func() bool { return c.source.refused.Value() == uint64(n+1) })
	}
}

// TestSource_WhatHasNoRoomStaysInTheChannel sends to a loop that does not run yet.
func TestSource_WhatHasNoRoomStaysInTheChannel(t *testing.T) {
	const depth, items = 3, 20
	r, c := newRig(t, func(c *config) { c.Gives = "job" })
	slow, got := loop.New("slow"), []uint64{}
	receiver := slow.NewReceiver("slow")
	ctx, stop := context.WithCancel(t.Context())
	slot := bus.NewSlot(receiver, "slow.on_job", "job", func(m *hostabi.Message) {
		if got = append(got, m.Inline[0]); len(got) == items {
			stop()
		}
	})
	wire, err := bus.Connect(r.Host.Signal("get"), slot, bus.Options{Mode: bus.All, Depth: depth, Overflow: bus.Block})
	if err != nil {
		t.Fatal(err)
	}
	defer wire.DisconnectNow()
	for n := range items {
		put(t, defaultKey, 1, number(int64(n)))
	}
	channel := c.server.Channel()
	r.MustRun(func() bool { return wire.Stats().Blocked == 1 })
	r.MustSettle()
	if left := channel.Now(defaultKey).Items; left != items-depth-2 {
		t.Errorf("%d items are in the channel, want all but %d that wait at the slot, one at the wire and one taken", left, depth)
	}
	done := make(chan error, 1)
	go func() { done <- slow.Run(ctx) }()
	r.MustRun(func() bool { return ctx.Err() != nil })
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for n, is := range got {
		if is != uint64(n) {
			t.Fatalf("in the order %v", got)
		}
	}
}

// TestSource_FailsWhereTheWireSaysSo: on_full = "fail" is that no more than depth messages are ever under way.
func TestSource_FailsWhereTheWireSaysSo(t *testing.T) {
	r, _ := newRig(t, func(c *config) { c.Gives = "job" })
	slot := bus.NewSlot(loop.New("slow").NewReceiver("slow"), "slow.on_job", "job", func(*hostabi.Message) {})
	wire, err := bus.Connect(r.Host.Signal("get"), slot, bus.Options{Mode: bus.All, Depth: 1, Overflow: bus.Fail})
	if err != nil {
		t.Fatal(err)
	}
	defer wire.DisconnectNow()
	put(t, defaultKey, 1, number(1))
	put(t, defaultKey, 1, number(2))
	if err := r.RunUntil(func() bool { return false }); !errors.Is(err, bus.ErrFull) {
		t.Errorf("%v, want that the wire is full", err)
	}
}

func TestSource_PutsBackWhatItHasTaken(t *testing.T) {
	r, c := newRig(t, func(c *config) { c.Gives = "job" })
	r.MustSettle()
	put(t, defaultKey, 1, number(1)) // taken, while the loop does not run
	channel := c.server.Channel()
	if n := channel.Now(defaultKey).Items; n != 0 {
		t.Fatalf("%d items are left", n)
	}
	c.source.stop()
	if n := channel.Now(defaultKey).Items; n != 1 {
		t.Errorf("%d items, want the one that was taken", n)
	}
}

func TestSource_ChecksItsTable(t *testing.T) {
	for key, change := range map[string]func(c *config){
		"takes": func(c *config) { c.Takes = component.PayloadEpisode }, "gives": func(c *config) { c.Gives = component.PayloadTrajectory },
		"key": func(c *config) { c.Key = "env" }, "weight": func(c *config) { c.Weight = "length" }, "keys": func(c *config) { c.Gives, c.Keys = "", []string{"a"} },
	} {
		err := New().Configure(func(into any) error {
			into.(*config).Gives = "job"
			change(into.(*config))
			return nil
		})
		var wrong *component.ConfigError
		if !errors.As(err, &wrong) || wrong.Key != key {
			t.Errorf("a wrong %s: %v", key, err)
		}
	}
}
