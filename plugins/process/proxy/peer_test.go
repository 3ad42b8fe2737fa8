package proxy

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/internal/spawntest"
	"github.com/rlhost/rlhost/plugins/process/spawn"
	sdk "github.com/rlhost/rlhost/sdk/process"
)

// asker asks another component for each number, and emits the answer as bits of a number, or which error it was.
type asker struct{ component.Component }

type weighing struct {
	N uint64 `json:"n"`
}

func serveAsker() {
	sdk.Serve(sdk.Plugin{Kinds: map[string]func() component.Component{"asker": func() component.Component { return asker{} }}})
}

func (asker) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{{Name: "numbers", Payload: "number"}}, Slots: []component.Port{{Name: "on_number", Payload: "number"}},
		Asks: []hostabi.Request{{Name: "weigh", Args: hostabi.RequestArgs[weighing]()}},
	}
}

func (asker) Configure(decode func(any) error) error { return decode(&struct{}{}) }

// outcomes are the errors that an asker tells apart, by their numbers.
var outcomes = []error{component.ErrLate, component.ErrLost, component.ErrBusy, component.ErrAnswer}

func (asker) Start(h *component.Host) error {
	h.Slot("on_number", func(m *hostabi.Message) {
		args, err := json.Marshal(weighing{m.Inline[0]})
		if err != nil {
			h.Fail(err)
			return
		}
		h.Request("weigh", args, time.Minute, func(reply json.RawMessage, err error) {
			var weight uint64
			if err == nil {
				err = json.Unmarshal(reply, &weight)
			}
			out := hostabi.Message{Inline: [2]uint64{weight, told(err)}}
			if emitted := h.Signal("numbers").Emit(out); emitted != nil {
				h.Fail(emitted)
			}
		})
	})
	return nil
}

// told is the number of an error: 0 none, 10 of arguments, 20 of the handler with all that is known, else one more than its place in outcomes.
func told(err error) uint64 {
	var raised *component.Raised
	switch {
	case err == nil:
		return 0
	case errors.As(err, new(*component.ArgsError)):
		return 10
	case errors.As(err, &raised) && *raised == component.Raised{Type: "T", Text: "text", Place: "place:1"}:
		return 20
	}
	for i, e := range outcomes {
		if errors.Is(err, e) {
			return uint64(i) + 1
		}
	}
	return 99
}

func (asker) Snapshot() (component.State, error) { return component.State{}, nil }
func (asker) Restore(component.State) error      { return nil }
func (asker) Stop() error                        { return nil }

// A component in a process asks another one by its host, and gets the answer, or what became of the question.
func TestRequest_AProcessAsksAnotherComponent(t *testing.T) {
	r, _ := spawntest.NewRuntime(t, spawn.Options{})
	c := newProxy(t, r, spawntest.Self(t, "asker"), "asker")
	if asks := c.Manifest().Asks; len(asks) != 1 || asks[0].String() != "weigh(n integer)" {
		t.Errorf("asks %v, want weigh(n integer)", asks)
	}
	answers := []func() (json.RawMessage, error){
		func() (json.RawMessage, error) { return json.RawMessage("5"), nil },
		func() (json.RawMessage, error) { return nil, &component.ArgsError{Reason: "no"} },
		func() (json.RawMessage, error) {
			return nil, &component.Raised{Type: "T", Text: "text", Place: "place:1", Stack: "not told"}
		},
		func() (json.RawMessage, error) { return nil, component.ErrLate },
		func() (json.RawMessage, error) { return nil, component.ErrLost },
		func() (json.RawMessage, error) { return nil, component.ErrBusy },
		func() (json.RawMessage, error) { return nil, component.ErrAnswer },
	}
	s := plugintest.NewStage(t, c, plugintest.StageOptions{Name: "asker", AskOther: func(ask string, args json.RawMessage, within time.Duration, answer func(json.RawMessage, error)) {
		var q weighing
		if err := json.Unmarshal(args, &q); err != nil || ask != "weigh" || within != time.Minute {
			t.Errorf("%s(%s) within %v, %v", ask, args, within, err)
		}
		answer(answers[q.N]())
	}})
	block := bus.Options{Mode: bus.All, Depth: 64, Overflow: bus.Block}
	numbers := s.To("on_number", false, block)
	s.From("numbers", false, block)
	for n, want := range [][2]uint64{{5, 0}, {0, 10}, {0, 20}, {0, 1}, {0, 2}, {0, 3}, {0, 4}} {
		if err := numbers.Emit(hostabi.Message{Inline: [2]uint64{uint64(n)}}); err != nil {
			t.Fatal(err)
		}
		if got := s.Next("numbers").Inline; got != want {
			t.Errorf("question %d ends with %v, want %v", n, got, want)
		}
	}
}
