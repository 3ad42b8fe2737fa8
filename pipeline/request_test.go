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

// oracle counts ticks, and answers requests.
type oracle struct {
	component.Component
	c struct {
		Deaf bool `toml:"deaf"` // it binds no request
	}
	h      *component.Host
	ticks  int
	inSlot bool
}

type addition struct {
	N int `json:"n"`
}

func (a *oracle) Manifest() component.Manifest {
	return component.Manifest{Slots: graphtest.Ports("on_ticks", "tick"), Requests: []hostabi.Request{
		{Name: "add", Doc: "adds to the ticks", Args: hostabi.RequestArgs[addition]()}, {Name: "burst"}, {Name: "hang"}, {Name: "later"}, {Name: "twice"},
	}}
}

func (a *oracle) Configure(decode func(any) error) error { return decode(&a.c) }

func (a *oracle) Start(h *component.Host) error {
	a.h = h
	h.Slot("on_ticks", func(*hostabi.Message) {
		a.inSlot = true
		a.ticks++
		a.inSlot = false
	})
	if a.c.Deaf {
		return nil
	}
	h.Handle("add", component.Answer(a.add))
	h.Handle("burst", component.Answer(func(context.Context, struct{}) (int, error) { panic("of laughter") }))
	h.Handle("hang", func(ctx context.Context, _ json.RawMessage, _ func(json.RawMessage, error)) { <-ctx.Done() })
	h.Handle("later", func(ctx context.Context, _ json.RawMessage, answer func(json.RawMessage, error)) {
		go answer(json.RawMessage(`"from elsewhere"`), nil)
	})
	h.Handle("twice", func(_ context.Context, _ json.RawMessage, answer func(json.RawMessage, error)) {
		answer(json.RawMessage("1"), nil)
		answer(json.RawMessage("2"), nil)
	})
	return nil
}

func (a *oracle) add(_ context.Context, q addition) (string, error) {
	if a.inSlot {
		return "", errors.New("within a slot")
	}
	if q.N < 0 {
		return "", fmt.Errorf("%d is too few", q.N)
	}
	a.ticks += q.N
	return fmt.Sprintf("%s+%d", a.h.Name, q.N), nil
}

func (a *oracle) Snapshot() (component.State, error) { return component.State{}, nil }
func (a *oracle) Stop() error                        { return nil }

// answering is a chain that an oracle hears, too.
func answering(t *testing.T, sets ...string) (*world, *Pipeline) {
	t.Helper()
	const tables = "[component.oracle]\nkind = \"oracle\"\ncount = 2\n[[wire]]\nsignal = \"source.ticks\"\nslot = \"oracle.on_ticks\"\nmode = \"latest\"\n"
	_, w, p := observe(t, chain(tables), BuildOptions{}, sets...)
	return w, p
}

func ask(t *testing.T, p *Pipeline, within time.Duration, q control.AskRequest) []control.AskAnswer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	reply, err := p.Ask(ctx, &q)
	if err != nil {
		t.Fatal(err)
	}
	return reply.Answers
}

// said describes answers in a line.
func said(answers []control.AskAnswer) string {
	var list []string
	for _, a := range answers {
		text := fmt.Sprintf("%s %s %s", a.Name, a.State, a.Reply)
		if a.Error != nil {
			text = fmt.Sprintf("%s %s %s %s", a.Name, a.State, a.Error.Code, a.Error.Reason)
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

const enoughTime = 20 * time.Second

func TestAsk_EachComponentAnswersBetweenTwoMessages(t *testing.T) {
	w, p := answering(t)
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	add := control.AskRequest{Patterns: []string{"oracle"}, Name: "add", Args: json.RawMessage(`{"n": 3}`)}
	if got, want := said(ask(t, p, enoughTime, add)), `oracle[0] running "oracle[0]+3", oracle[1] running "oracle[1]+3"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	add.Each = map[string]json.RawMessage{"oracle[1]": json.RawMessage(`{"n": -1}`)}
	if got, want := said(ask(t, p, enoughTime, add)), `oracle[0] running "oracle[0]+3", oracle[1] running E122 -1 is too few`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	add.Patterns, add.Each = nil, map[string]json.RawMessage{"oracle[0]": json.RawMessage(`{"m": 1}`)}
	if got, want := said(ask(t, p, enoughTime, add)), `oracle[0] running E121 there is no argument m, oracle[1] running "oracle[1]+3"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	add = control.AskRequest{Patterns: []string{"*"}, Name: "later"}
	if got, want := said(ask(t, p, enoughTime, add)), `source running E120 it does not answer the request "later", `; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want it to begin with %s", got, want)
	} else if want := `oracle[1] running "from elsewhere"`; !strings.HasSuffix(got, want) {
		t.Errorf("%s, want it to end with %s", got, want)
	}
	pause(t, p, "oracle")
	add = control.AskRequest{Name: "add", Args: json.RawMessage(`{"n": 0}`)}
	if got, want := said(ask(t, p, enoughTime, add)), `oracle[0] paused "oracle[0]+0", oracle[1] paused "oracle[1]+0"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	resume(t, p)
	testkit.Until(t, "ticks again", moving(w))
	if _, err := end(); err != nil {
		t.Error(err)
	}
	if got := said(ask(t, p, enoughTime, add)); strings.Count(got, "lost E125 it has ended before it answered") != 2 {
		t.Errorf("after the end: %s", got)
	}
}

func TestAsk_FaultsOfHandlersAreAnswersAndTheRunContinues(t *testing.T) {
	w, p := answering(t)
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	got := ask(t, p, enoughTime, control.AskRequest{Patterns: []string{"oracle[0]"}, Name: "burst"})
	if e := got[0].Error; e == nil || e.Code != control.CodeRaised || e.Type != "panic" || e.Reason != "of laughter" || !strings.HasPrefix(e.Place, "request_test.go:") {
		t.Errorf("a panic: %+v", got[0].Error)
	}
	if got, want := said(ask(t, p, enoughTime, control.AskRequest{Name: "twice", Patterns: []string{"oracle[1]"}})), "oracle[1] running 1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	started := time.Now()
	answers := ask(t, p, 50*time.Millisecond, control.AskRequest{Name: "hang"})
	if time.Since(started) > enoughTime || !answers[0].TimedOut || !answers[1].TimedOut || answers[0].Error.Code != control.CodeUnanswered {
		t.Errorf("hangs: %s", said(answers))
	}
	testkit.Until(t, "ticks again", moving(w))
	if _, err := end(); err != nil {
		t.Error(err)
	}
}

func TestAsk_RefusesWhatNobodyAnswers(t *testing.T) {
	_, p := answering(t)
	for _, c := range []struct {
		q          control.AskRequest
		code       control.Code
		text, help string
	}{
		{control.AskRequest{Patterns: []string{"nobody"}, Name: "add"}, control.CodeUnknown, "no component is called", "oracle[0]"},
		{control.AskRequest{Patterns: []string{"a b"}, Name: "add"}, control.CodeBad, "pattern", ""},
		{control.AskRequest{Patterns: []string{"oracle"}, Name: "ad"}, control.CodeRequest, `oracle does not answer the request "ad"`,
			`did you mean "add"? oracle answers add(n integer), oracle answers burst()`},
		{control.AskRequest{Name: "a/b"}, control.CodeRequest, `nobody answers the request "a/b"`, "oracle answers add(n integer)"},
		{control.AskRequest{Patterns: []string{"sink"}, Name: "add"}, control.CodeRequest, "sink does not answer", "oracle answers add(n integer)"},
		{control.AskRequest{Name: "add", Each: map[string]json.RawMessage{"sink": nil}}, control.CodeBad, `arguments for "sink", which is not asked`, ""},
	} {
		reply, err := p.Ask(t.Context(), &c.q)
		var e *control.Error
		if !errors.As(err, &e) || reply != nil || e.Code != c.code || !strings.Contains(e.Reason, c.text) || !strings.Contains(e.Help, c.help) {
			t.Errorf("%+v: %v, %+v", c.q, reply, e)
		}
	}
	reply, err := p.Ask(t.Context(), &control.AskRequest{Patterns: []string{"oracle[1]", "sink"}})
	if err != nil || len(reply.Offers) != 2 || reply.Offers[1].Name != "oracle[1]" || len(reply.Offers[1].Requests) != 5 || reply.Offers[0].Requests != nil {
		t.Errorf("offers %+v, %v", reply, err)
	}
}

func TestBuild_RefusesARequestWithoutAHandler(t *testing.T) {
	w, parts := newWorld()
	parts.Kinds["oracle"] = func() component.Component { return &oracle{} }
	const tables = "[component.oracle]\nkind = \"oracle\"\ndeaf = true\n[[wire]]\nsignal = \"source.ticks\"\nslot = \"oracle.on_ticks\"\nmode = \"latest\"\n"
	p, err := Build(t.Context(), mustParse(t, tickFile(plain)+tables, parts), BuildOptions{Parts: parts})
	if want := `oracle: kind oracle does not bind its request "add"`; p != nil || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Build = %v, want %s", err, want)
	}
	if len(w.stopped) != len(w.started) {
		t.Errorf("started %v, stopped %v", w.started, w.stopped)
	}
}

// A swap does not lose a request without an answer: it is answered by the former instance, or refused.
func TestAsk_DuringChangesEveryRequestIsAnswered(t *testing.T) {
	w, p := answering(t)
	end := startRun(t, p)
	testkit.Until(t, "ticks", moving(w))
	var asked, answered, lost atomic.Int64
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
			reply, err := p.Ask(ctx, &control.AskRequest{Name: "add", Args: json.RawMessage(`{"n": 1}`)})
			cancel()
			if err != nil {
				t.Error(err)
				return
			}
			asked.Add(1)
			switch a := reply.Answers[0]; {
			case a.Error == nil:
				answered.Add(1)
			case a.Error.Code == control.CodeLost:
				lost.Add(1)
			default:
				t.Errorf("%s", said(reply.Answers))
				return
			}
		}
	}()
	for _, n := range []int{3, 1, 2} {
		g := mustParse(t, chain(fmt.Sprintf("[component.oracle]\nkind = \"oracle\"\ncount = %d\n[[wire]]\nsignal = \"source.ticks\"\nslot = \"oracle.on_ticks\"\nmode = \"latest\"\n", n)), p.options.Parts)
		tr, err := p.Prepare(t.Context(), g, TransitionOptions{})
		if err == nil {
			_, err = tr.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "answers", func() bool { return answered.Load() > 10 })
	close(stop)
	<-done
	if asked.Load() != answered.Load()+lost.Load() {
		t.Errorf("%d asked, %d answered, %d lost", asked.Load(), answered.Load(), lost.Load())
	}
	if _, err := end(); err != nil {
		t.Error(err)
	}
}
