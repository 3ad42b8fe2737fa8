package ctest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/process/proxy"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// newOracle runs the component of testdata/oracle.c.
func newOracle(t *testing.T, mode Mode) *plugintest.Stage {
	t.Helper()
	program := spawn.Program{Name: "oracle", Path: Build(t, mode, "../testdata/oracle.c")}
	c, err := proxy.New(context.Background(), newRuntime(t), program, "oracle")
	if err != nil {
		t.Fatal(err)
	}
	return plugintest.NewStage(t, c, plugintest.StageOptions{Name: "oracle"})
}

// ask asks the component and returns its answer, or its error with all that is known of it.
func ask(t *testing.T, s *plugintest.Stage, name, args string, within time.Duration) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	came := make(chan string, 1)
	s.Host.Ask(ctx, name, json.RawMessage(args), func(reply json.RawMessage, err error) {
		var raised *component.Raised
		switch {
		case errors.As(err, &raised):
			came <- fmt.Sprintf("%s|%s|%s", raised.Type, raised.Text, raised.Place)
		case err != nil:
			came <- err.Error()
		default:
			came <- string(reply)
		}
	}, func() { t.Errorf("%s is answered twice", name) })
	select {
	case got := <-came:
		return got
	case <-ctx.Done():
		return "no answer"
	}
}

const soon = 20 * time.Second

func TestRequests_ComponentsInCAnswer(t *testing.T) {
	for name, mode := range map[string]Mode{"plain": Plugin, "sanitized": SanitizedPlugin} {
		t.Run(name, func(t *testing.T) {
			s := newOracle(t, mode)
			deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
			want := []string{"total(times integer?)", "echo(yes bool?, n integer?, x number?, text text?, list list?, table table?)", "wrong(what text)", "idled()"}
			for i, r := range s.Component.Manifest().Requests {
				if r.String() != want[i] {
					t.Errorf("request %d: %s, want %s", i, r.String(), want[i])
				}
			}
			for _, c := range []struct{ name, args, want string }{
				{"total", `{}`, "0"},
				{"echo", `{}`, `[false,0,0,"none",[],{}]`},
				{"echo", `{"yes":true,"n":-5,"x":0.1,"text":"\u00e4\"\n","list":[1,{"a":null}],"table":{"b":[]}}`, `[true,-5,0.1,"ä\"\u000a",[1,{"a":null}],{"b":[]}]`},
				{"echo", `{"n":9223372036854775807,"x":1e300}`, `[false,9223372036854775807,1e+300,"none",[],{}]`},
				{"echo", `{"n":3,"n":4,"\u0078":2}`, `[false,4,2,"none",[],{}]`},
				{"echo", `{"n":3.0}`, "|the argument n is 3.0, want a whole number of 64 bits|"},
				{"echo", `{"n":1e30}`, "|the argument n is 1e30, want a whole number of 64 bits|"},
				{"echo", `{"n":9223372036854775808}`, "|the argument n is 9223372036854775808, want a whole number of 64 bits|"},
				{"echo", `{"x":1e999}`, "|the argument x is 1e999, want a number|"},
				{"echo", `{"list":` + deep + `}`, `[false,0,0,"none",` + deep + `,{}]`},
				{"wrong", `{"what":"raise"}`, `ValueError|no such key: "ä"|oracle.c:72`},
				{"wrong", `{"what":"code"}`, "|stale handle|"},
				{"wrong", `{"what":"nothing"}`, `the answer is not JSON: ""`},
				{"wrong", `{"what":"half"}`, `the answer is not JSON: "{\"a\":"`},
				{"wrong", `{"what":"nan"}`, `the answer is not JSON: "nan"`},
				{"wrong", `{"what":"long"}`, "the answer has 200002 bytes, at most 122880"},
				{"wrong", `{"what":"else"}`, "null"},
			} {
				if got := ask(t, s, c.name, c.args, soon); got != c.want {
					t.Errorf("%s(%s): %s, want %s", c.name, c.args, got, c.want)
				}
			}
		})
	}
}

// A wrong description is an error with the name of the request before anything runs.
func TestRequests_DescriptionsInCAreChecked(t *testing.T) {
	path := Build(t, Plugin, "../testdata/misdescribed.c")
	for kind, want := range map[string]string{
		"no_type":      `the request weigh has an argument item of the type ""`,
		"no_such_type": `the request weigh has an argument grams of the type "int"`,
		"no_name":      `a request is called "Weigh", want small letters, digits and _`,
	} {
		_, err := proxy.New(t.Context(), newRuntime(t), spawn.Program{Name: "misdescribed", Path: path}, kind)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", kind, err, want)
		} else {
			t.Log(err)
		}
	}
}

// A program that ends while it answers leaves the question without an answer, and its successor answers the next.
func TestRequests_AHandlerInCThatCrashes(t *testing.T) {
	s := newOracle(t, Plugin)
	if got := ask(t, s, "wrong", `{"what":"crash"}`, soon); !strings.Contains(got, component.ErrLost.Error()) {
		t.Errorf("%s, want that it has ended", got)
	}
	s.Until("an answer of the next process", func() bool { return ask(t, s, "total", "{}", soon) == "0" })
}

func TestRequests_AHandlerInCThatFailsItsComponent(t *testing.T) {
	s := newOracle(t, Plugin)
	if got := ask(t, s, "wrong", `{"what":"fail"}`, soon); !strings.Contains(got, component.ErrLost.Error()) {
		t.Errorf("%s, want that it has ended", got)
	}
	if err := s.Failure(); err == nil || !strings.Contains(err.Error(), "told to fail") {
		t.Errorf("the component ends with %v", err)
	}
}

// A component that is asked all the time is still called when it is idle.
func TestRequests_LeaveTimeForIdle(t *testing.T) {
	s := newOracle(t, Plugin)
	over := make(chan struct{})
	var answered func(json.RawMessage, error)
	answered = func(_ json.RawMessage, err error) { // many are always under way
		select {
		case <-over:
		default:
			if err == nil {
				s.Host.Ask(t.Context(), "wrong", json.RawMessage(`{"what":"slow"}`), answered, func() {})
			}
		}
	}
	for range 100 {
		answered(nil, nil)
	}
	s.Until("calls of idle", func() bool {
		var n int
		return json.Unmarshal([]byte(ask(t, s, "idled", "{}", soon)), &n) == nil && n > 20
	})
	close(over)
}

// Questions and messages take turns, and each is whole.
func TestRequests_BetweenMessages(t *testing.T) {
	s := newOracle(t, SanitizedPlugin)
	queue := bus.Options{Mode: bus.Queue, Depth: 4096, Overflow: bus.Block}
	in := s.To("on_number", false, queue)
	s.From("numbers", false, queue)
	const n = 2000
	for i := range n {
		if err := in.Emit(hostabi.Message{Inline: [2]uint64{uint64(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	last := -1
	for range 100 {
		var total int
		if got := ask(t, s, "total", `{"times":1}`, soon); json.Unmarshal([]byte(got), &total) != nil || total < last || total > n {
			t.Fatalf("%s numbers after %d", got, last)
		}
		last = total
	}
	for i := range n {
		if m := s.Next("numbers"); m.Inline[0] != uint64(i) {
			t.Fatalf("number %d is %d", i, m.Inline[0])
		}
	}
	if got := ask(t, s, "total", `{"times":2}`, soon); got != fmt.Sprint(2*n) {
		t.Errorf("%s in the end, want %d", got, 2*n)
	}
}
