package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph/graphtest"
)

// courier passes questions on: to others, and their answers back.
type courier struct {
	component.Component
	h *component.Host
}

// errand says what a courier asks.
type errand struct {
	Ask    string          `json:"ask"`
	Args   json.RawMessage `json:"args,omitempty"`
	Within int             `json:"within_ms,omitempty"`
	Times  int             `json:"times,omitempty"` // 0: once; the last answer is the courier's
}

func (c *courier) Manifest() component.Manifest {
	args := []hostabi.RequestArg{{Name: "ask", Type: hostabi.RequestText}, {Name: "args", Type: hostabi.RequestAny, Optional: true},
		{Name: "within_ms", Type: hostabi.RequestInteger, Optional: true}, {Name: "times", Type: hostabi.RequestInteger, Optional: true}}
	return component.Manifest{Slots: graphtest.Ports("on_ticks", "tick"), Requests: []hostabi.Request{{Name: "carry", Args: args}},
		Asks: []hostabi.Request{{Name: "add", Args: []hostabi.RequestArg{{Name: "n", Type: hostabi.RequestNumber}}}, {Name: "burst"}, {Name: "hang"}, {Name: "later"}, {Name: "other", Args: args}}}
}

func (c *courier) Configure(decode func(any) error) error { return decode(&struct{}{}) }

func (c *courier) Start(h *component.Host) error {
	c.h = h
	h.Slot("on_ticks", func(*hostabi.Message) {})
	h.Handle("carry", func(_ context.Context, args json.RawMessage, answer func(json.RawMessage, error)) {
		var e errand
		if err := json.Unmarshal(args, &e); err != nil {
			answer(nil, err)
			return
		}
		c.carry(&e, answer)
	})
	return nil
}

func (c *courier) carry(e *errand, answer func(json.RawMessage, error)) {
	left := max(e.Times, 1)
	for range left {
		c.h.Request(e.Ask, e.Args, time.Duration(e.Within)*time.Millisecond, func(reply json.RawMessage, err error) {
			if left--; errors.Is(err, component.ErrBusy) || left == 0 {
				answer(reply, err)
			}
		})
	}
}

func (c *courier) Snapshot() (component.State, error) { return component.State{}, nil }
func (c *courier) Stop() error                        { return nil }

const courierAsks = "kind = \"courier\"\nasks = { add = \"oracle.add\", burst = \"oracle[0].burst\", hang = \"oracle.hang\", later = \"oracle.later\", other = \"%s.carry\" }\n"

// couriers is a chain that oracles hear, and two couriers: a of two instances, and b.
func couriers(oracles int) string {
	tables := fmt.Sprintf("[component.oracle]\nkind = \"oracle\"\ncount = %d\n[component.a]\ncount = 2\n"+courierAsks+"[component.b]\n"+courierAsks, oracles, "b", "a")
	for _, name := range []string{"oracle", "a", "b"} {
		tables += "[[wire]]\nsignal = \"source.ticks\"\nslot = \"" + name + ".on_ticks\"\nmode = \"latest\"\n"
	}
	return chain(tables)
}

func carry(t *testing.T, p *Pipeline, who, errand string) control.AskAnswer {
	t.Helper()
	return ask(t, p, enoughTime, control.AskRequest{Patterns: []string{who}, Name: "carry", Args: json.RawMessage(errand)})[0]
}

// What a component asks another is answered by the one that the file names, as a message of its own, whatever becomes of the question.
func TestRequest_AComponentAsksAnother(t *testing.T) {
	_, w, p := observe(t, couriers(2), BuildOptions{})
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	for _, c := range []struct{ who, errand, want string }{
		{"a[0]", `{"ask": "add", "args": {"n": 3}}`, `a[0] running "oracle[0]+3"`},
		{"a[1]", `{"ask": "add", "args": {"n": 4}}`, `a[1] running "oracle[1]+4"`},
		{"b", `{"ask": "add", "args": {"n": -4}}`, `b running E122 -4 is too few`},
		{"b", `{"ask": "add", "args": {"n": 1.5}}`, `b running E121 the argument n is 1.5, want a whole number such as 3`},
		{"b", `{"ask": "later"}`, `b running "from elsewhere"`},
		{"b", `{"ask": "later", "times": 256}`, `b running "from elsewhere"`},
		{"b", `{"ask": "nothing"}`, `b running E122 component b: its manifest asks no "nothing"`},
		// A question that comes back to the asker while its own waits.
		{"a[0]", `{"ask": "other", "args": {"ask": "other", "args": {"ask": "add", "args": {"n": 5}}}}`, `a[0] running "oracle[0]+5"`},
	} {
		if got := said([]control.AskAnswer{carry(t, p, c.who, c.errand)}); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.errand, c.who, got, c.want)
		}
	}
	burst := carry(t, p, "a[0]", `{"ask": "burst"}`).Error
	if burst == nil || burst.Type != "panic" || burst.Reason != "of laughter" || !strings.HasPrefix(burst.Place, "request_test.go:") {
		t.Errorf("a panic: %+v", burst)
	}
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

// A handler that does not return holds up neither the asker nor others, and no more than so many questions wait for it.
func TestRequest_OfAComponentEndsInTime(t *testing.T) {
	_, w, p := observe(t, couriers(1), BuildOptions{})
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	if got, want := said([]control.AskAnswer{carry(t, p, "b", `{"ask": "hang", "within_ms": 50}`)}), "b running E123 it did not answer in time"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := carry(t, p, "b", `{"ask": "hang", "within_ms": 1500, "times": 257}`).Error, "too many requests are under way: 256 wait for an answer"; got == nil || got.Reason != want || got.Code != control.CodeBusy {
		t.Errorf("%+v, want %s", got, want)
	}
	if got, want := said([]control.AskAnswer{carry(t, p, "a[0]", `{"ask": "add", "args": {"n": 1}, "within_ms": 50}`)}), "a[0] running E123 it did not answer in time"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

// While what is asked is replaced, each question is answered by the former instance or the next, or lost.
func TestRequest_DuringChangesEachQuestionIsSettled(t *testing.T) {
	_, w, p := observe(t, couriers(1), BuildOptions{})
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	var answered, lost atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(context.Background(), enoughTime)
			reply, err := p.Ask(ctx, &control.AskRequest{Patterns: []string{"b"}, Name: "carry", Args: json.RawMessage(`{"ask": "add", "args": {"n": 1}}`)})
			cancel()
			switch {
			case err != nil:
				t.Error(err)
				return
			case reply.Answers[0].Error == nil:
				answered.Add(1)
			case reply.Answers[0].Error.Code == control.CodeLost:
				lost.Add(1)
			default:
				t.Error(said(reply.Answers))
				return
			}
		}
	}()
	for _, n := range []int{3, 1, 2} {
		before := answered.Load()
		g := mustParse(t, couriers(n), p.options.Parts)
		tr, err := p.Prepare(t.Context(), g, TransitionOptions{})
		if err == nil {
			_, err = tr.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, "answers", func() bool { return answered.Load() > before+3 })
	}
	close(stop)
	<-done
	t.Logf("%d answered, %d lost", answered.Load(), lost.Load())
	if _, err := end(); err != nil {
		t.Error(err)
	}
}
