package channel

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	core "github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/channel/remote"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
)

// source makes messages of items that programs put. It has one item of each key at a time, and takes the next once the message has been
// emitted: where the wire has no room, the component's slots rest, and with them this, so that items stay in the channel.
type source struct {
	config  config
	h       *component.Host
	server  *remote.Server
	calls   []*core.Call // a get for each key
	refused *stat.Counter
}

func newSource(c config, h *component.Host, server *remote.Server) *source {
	if len(c.Keys) == 0 {
		c.Keys = []string{defaultKey}
	}
	s := &source{config: c, h: h, server: server, refused: h.Stats.Counter("channel/refused_items")}
	for i, key := range c.Keys {
		call := &core.Call{Kind: core.Get, Key: key}
		give := func(*hostabi.Message) { s.give(i, call) }
		call.Done = func(*core.Call) { h.Receiver.Post(give, hostabi.Message{}) }
		s.calls = append(s.calls, call)
	}
	return s
}

// start takes the first items.
func (s *source) start() {
	for _, call := range s.calls {
		s.server.Channel().Do(call)
	}
}

// give emits an item that has been taken, on the component's loop, and takes the next.
func (s *source) give(key int, call *core.Call) {
	if errors.Is(call.Err, core.ErrClosed) {
		return // no item comes any more
	}
	if call.Err != nil {
		s.h.Fail(fmt.Errorf("key %q: %w", call.Key, call.Err))
		return
	}
	item := call.Items[0]
	call.Items = nil
	m, err := s.message(key, item)
	s.server.Release(item)
	if err != nil {
		s.refused.Add(1)
		s.h.Log.Warn("channel: an item is no message", "key", call.Key, "payload", s.config.Gives, "err", err, "refused", s.refused.Value())
	} else if err := s.h.Signal("get").Emit(m); err != nil {
		s.h.Fail(err)
	}
	s.server.Channel().Do(call)
}

// stop puts items back that have been taken and not emitted. The loop has ended.
func (s *source) stop() {
	for _, call := range s.calls {
		if s.server.Channel().Cancel(call, core.ErrCanceled) || len(call.Items) == 0 {
			continue
		}
		if err := s.server.Channel().Restore(call.Key, call.Items...); err != nil {
			s.h.Log.Warn("channel: an item was not put back", "key", call.Key, "err", err)
		}
	}
}

func (s *source) message(key int, item core.Item) (hostabi.Message, error) {
	if s.config.Gives == component.PayloadEpisode {
		return s.episode(s.config.Keys[key], item)
	}
	return inlineMessage(key, item)
}

// inlineMessage makes a message of a payload that rlhost does not know: of 16 bytes, or of a number and the item's weight.
func inlineMessage(key int, item core.Item) (hostabi.Message, error) {
	m := hostabi.Message{T: uint32(key)}
	value, err := parseValue(item.Data)
	if err != nil {
		return m, err
	}
	m.Inline[1] = math.Float64bits(item.Weight)
	switch v := value.(type) {
	case int64:
		m.Inline[0] = uint64(v)
	case float64:
		m.Inline[0] = math.Float64bits(v)
	case []byte:
		if m.Inline, err = inlineOf(v); err != nil {
			return m, err
		}
	default:
		return m, fmt.Errorf("a message has 16 bytes: want an int, a float or bytes, not %T", value)
	}
	return m, nil
}

// episode makes a message of a dict of an episode's values, with the item's key and weight as values where the table says so.
func (s *source) episode(key string, item core.Item) (hostabi.Message, error) {
	values, err := parseDict(item.Data)
	if err != nil {
		return hostabi.Message{}, err
	}
	if s.config.Key != "" {
		n, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			return hostabi.Message{}, fmt.Errorf("the key is to be %s, a number, and is %q", s.config.Key, key)
		}
		values[s.config.Key] = n
	}
	if s.config.Weight != "" {
		values[s.config.Weight] = item.Weight
	}
	return episodeOf(values)
}

// episodeOf makes a message of an episode's values. return and length must be there.
func episodeOf(values map[string]any) (hostabi.Message, error) {
	r := reader{values: values}
	e := trajectory.Episode{
		Return: float32(r.number("return", true, math.MaxFloat32)), Length: uint32(r.whole("length", true, math.MaxUint32)),
		Env: uint32(r.whole("env", false, math.MaxUint32)), Agent: uint16(r.whole("agent", false, 1<<15-1)),
		Terminated: r.truth("terminated"),
	}
	version := r.whole("policy_version", false, 1<<53)
	for name := range values {
		r.fail("it has %q, which an episode has not: want return, length, env, agent, terminated, policy_version", name)
	}
	m := e.Message()
	m.PolicyVersion = version
	return m, r.err
}
