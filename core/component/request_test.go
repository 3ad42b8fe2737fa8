package component

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

type setLR struct {
	LR    float64        `json:"lr" doc:"of the optimiser"`
	Warm  *bool          `json:"warm"`
	Steps int            `json:"steps,omitempty"`
	Names []string       `json:"names,omitempty"`
	More  map[string]int `json:"more,omitempty"`
	Text  string         `json:"text,omitempty"`
	Any   any            `json:"any,omitempty"`
	Left  int            `json:"-"`
}

var lr = hostabi.Request{Name: "set_lr", Args: hostabi.RequestArgs[setLR]()}

func TestRequest_ArgumentsAreTheFieldsOfAStruct(t *testing.T) {
	const want = "set_lr(lr number, warm bool?, steps integer?, names list?, more table?, text text?, any any?)"
	if got := lr.String(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if lr.Args[0].Doc != "of the optimiser" {
		t.Errorf("%+v", lr.Args[0])
	}
}

func TestCheckArgs_NamesTheMistake(t *testing.T) {
	for args, want := range map[string]string{
		"":                         "the argument lr is missing",
		`{"lr": 1e-4}`:             "",
		`{"lr": 1, "steps": -3}`:   "",
		`{"lr": 1, "steps": 3.0}`:  "the argument steps is 3.0, want a whole number such as 3",
		`{"lr": 1, "steps": 1e3}`:  "the argument steps is 1e3, want a whole number such as 3",
		`{"lr": 1, "steps": "3"}`:  `the argument steps is "3", want a whole number such as 3`,
		`{"lr": 1, "any": [null]}`: "",
		`{"lr": "1"}`:              `the argument lr is "1", want a number`,
		`{"lr": null}`:             "the argument lr is null, want a number",
		`{"lr": 1, "steps": 1.5}`:  "the argument steps is 1.5, want a whole number such as 3",
		`{"lr": 1, "warm": 1}`:     "the argument warm is 1, want true or false",
		`{"lr": 1, "names": {}}`:   "the argument names is {}, want a list",
		`{"lr": 1, "more": []}`:    "the argument more is [], want a table",
		`{"lr": 1, "text": 2}`:     "the argument text is 2, want a text",
		`{"lr": 1, "nmes": []}`:    "there is no argument nmes",
		`[1]`:                      `the arguments are [1], want a JSON object such as {"lr": 0.001}`,
		`{"lr": 1`:                 "the arguments are not JSON: unexpected EOF",
		`{"lr": 1} {}`:             "the arguments are more than one JSON value",
		`{"lr": 1, "inner": 1}`:    "there is no argument inner",
		`{"lr": 1, "text": "` + strings.Repeat("x", hostabi.MaxRequestBytes) + `"}`: "the arguments have 122901 bytes, at most 122880",
	} {
		got, err := CheckArgs(&lr, json.RawMessage(args))
		var e *ArgsError
		switch {
		case want == "" && err != nil:
			t.Errorf("%.60s: %v", args, err)
		case want == "" && string(got) != args:
			t.Errorf("%s became %s", args, got)
		case want != "" && (!errors.As(err, &e) || e.Reason != want):
			t.Errorf("%.60s: %v, want %s", args, err, want)
		}
	}
	_, err := CheckArgs(&lr, json.RawMessage(`{"lr": 1, "nmes": []}`))
	var e *ArgsError
	if errors.As(err, &e); e.Help != "did you mean names?" {
		t.Errorf("help %q", e.Help)
	}
	if got, err := CheckArgs(&hostabi.Request{Name: "total"}, nil); err != nil || string(got) != "{}" {
		t.Errorf("no arguments: %s, %v", got, err)
	}
}

func FuzzCheckArgs(f *testing.F) {
	f.Add([]byte(`{"lr": 1e999, "steps": 12345678901234567890}`))
	f.Add([]byte(`{"lr": 1, "steps": 3}`))
	f.Fuzz(func(t *testing.T, args []byte) {
		checked, err := CheckArgs(&lr, args)
		if err != nil {
			return
		}
		var given map[string]any
		if err := json.Unmarshal(checked, &given); err != nil {
			if !strings.Contains(err.Error(), "cannot unmarshal number") {
				t.Fatalf("accepted %q: %v", args, err)
			}
			return
		}
		if _, ok := given["lr"]; !ok {
			t.Errorf("accepted %q without lr", args)
		}
	})
}

// asked asks a host with one handler, and returns what came and how often it answered again.
func asked(fn Handler) (reply string, again int, err error) {
	h := &Host{Name: "c"}
	h.Bind(Manifest{Requests: []hostabi.Request{{Name: "ask"}}})
	h.Handle("ask", fn)
	h.Ask(context.Background(), "ask", json.RawMessage("{}"), func(r json.RawMessage, e error) { reply, err = string(r), e }, func() { again++ })
	return reply, again, err
}

func TestAsk_AnswersErrorsAndPanicsWithTypeTextAndPlace(t *testing.T) {
	type empty struct{}
	reply, _, err := asked(Answer(func(context.Context, empty) (map[string]int, error) { return map[string]int{"n": 3}, nil }))
	if reply != `{"n":3}` || err != nil {
		t.Errorf("%s, %v", reply, err)
	}
	_, _, err = asked(Answer(func(context.Context, empty) (int, error) { return 0, fmt.Errorf("open: %w", fs.ErrNotExist) }))
	var raised *Raised
	if !errors.As(err, &raised) || raised.Type != "" || raised.Text != "open: file does not exist" {
		t.Errorf("%#v", err)
	}
	_, _, err = asked(Answer(func(context.Context, empty) (int, error) {
		return 0, &fs.PathError{Op: "open", Path: "x", Err: fmtError{}}
	}))
	if !errors.As(err, &raised) || raised.Type != "component.fmtError" || raised.Text != "open x: no luck" {
		t.Errorf("%#v", err)
	}
	_, _, err = asked(func(context.Context, json.RawMessage, func(json.RawMessage, error)) { panic("at the disco") })
	if !errors.As(err, &raised) || raised.Type != "panic" || raised.Text != "at the disco" || !regexp.MustCompile(`^request_test.go:\d+$`).MatchString(raised.Place) {
		t.Errorf("%#v", err)
	}
	_, _, err = asked(func(context.Context, json.RawMessage, func(json.RawMessage, error)) { _ = slices.Clone([]int{})[3] })
	if !errors.As(err, &raised) || !strings.Contains(raised.Text, "index out of range [3]") || !strings.HasPrefix(raised.Place, "request_test.go:") {
		t.Errorf("%#v", err)
	}
}

type fmtError struct{}

func (fmtError) Error() string { return "no luck" }

func TestAsk_TheFirstAnswerCountsAndMustBeOne(t *testing.T) {
	reply, again, err := asked(func(_ context.Context, _ json.RawMessage, answer func(json.RawMessage, error)) {
		answer(json.RawMessage("1"), nil)
		answer(json.RawMessage("2"), nil)
		panic("and a panic")
	})
	if reply != "1" || err != nil || again != 2 {
		t.Errorf("%s, %v, %d more answers", reply, err, again)
	}
	for _, bad := range []string{"", "{", strings.Repeat("1", hostabi.MaxRequestBytes+1)} {
		_, _, err := asked(func(_ context.Context, _ json.RawMessage, answer func(json.RawMessage, error)) {
			answer(json.RawMessage(bad), nil)
		})
		if !errors.Is(err, ErrAnswer) {
			t.Errorf("%.10q: %v", bad, err)
		}
	}
}

func TestCheckRequests_RefusesWhatCannotBeAsked(t *testing.T) {
	arg := func(name string, kind hostabi.RequestType) []hostabi.RequestArg {
		return []hostabi.RequestArg{{Name: name, Type: kind}}
	}
	for want, list := range map[string][]hostabi.Request{
		`called "a/b"`:                       {{Name: "a/b"}},
		`called "A"`:                         {{Name: "A"}},
		`called ""`:                          {{}},
		`called "1a"`:                        {{Name: "1a"}},
		"a is there twice":                   {{Name: "a"}, {Name: "a"}},
		`an argument x of the type "colour"`: {{Name: "a", Args: arg("x", "colour")}},
		`an argument "" twice or without`:    {{Name: "a", Args: arg("", hostabi.RequestText)}},
		`answers 257 requests`:               make([]hostabi.Request, 257),
	} {
		if err := hostabi.CheckRequests(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := hostabi.CheckRequests([]hostabi.Request{lr, {Name: "a_1"}}); err != nil {
		t.Error(err)
	}
}

// Each error of a question has its number.
func TestFaultOf_IsTheCodeThatUsersSee(t *testing.T) {
	for _, c := range []struct {
		err  error
		want hostabi.AnswerFault
	}{
		{&ArgsError{Reason: "no"}, hostabi.AnswerRefused}, {&Raised{Text: "no"}, hostabi.AnswerRaised}, {errors.New("no"), hostabi.AnswerRaised},
		{ErrLate, hostabi.AnswerLate}, {ErrAnswer, hostabi.AnswerNoAnswer}, {ErrLost, hostabi.AnswerLost}, {ErrBusy, hostabi.AnswerBusy},
	} {
		if got, _ := FaultOf(c.err); got != c.want {
			t.Errorf("%v is %d, want %d", c.err, got, c.want)
		}
	}
}
