package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/sdk/c/native/ctest"
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/process"
)

// oracleProgram is the name by which this program is the oracle in Go.
const oracleProgram = "oracle-go"

// ValueError is an error with the name of Python's.
type ValueError struct{ text string }

// Error returns the text.
func (e *ValueError) Error() string { return e.text }

// beOracle serves a component that answers as sdk/c/native/testdata/oracle.c does.
func beOracle() {
	type times struct {
		Times *int64 `json:"times"`
	}
	type echoed struct {
		Yes   bool           `json:"yes,omitempty"`
		N     int64          `json:"n,omitempty"`
		X     float64        `json:"x,omitempty"`
		Text  string         `json:"text,omitempty"`
		List  []any          `json:"list,omitempty"`
		Table map[string]any `json:"table,omitempty"`
	}
	type badly struct {
		What string `json:"what"`
	}
	process.Serve(process.Plugin{Components: map[string]func() component.Component{"oracle": func() component.Component {
		return &component.Declared{Requests: []component.Question{
			component.Asked("total", "numbers so far", func(q times) (int64, error) { return 0, nil }),
			component.Asked("echo", "its arguments", func(q echoed) ([]any, error) {
				return []any{q.Yes, q.N, q.X, q.Text, q.List, q.Table}, nil
			}),
			component.Asked("wrong", "", func(q badly) (any, error) {
				switch q.What {
				case "raise":
					return nil, &ValueError{`no such key: "ä"`}
				case "long":
					return strings.Repeat("x", 200_000), nil
				case "panic":
					panic("of laughter")
				case "crash":
					os.Exit(3)
				}
				return nil, nil
			}),
		}}
	}}})
}

// oracleInPython answers as sdk/c/native/testdata/oracle.c does.
const oracleInPython = `import os

import rlhost


class Oracle(rlhost.Component):
    @rlhost.request
    def total(self, times: int = 1):
        """numbers so far"""
        return 0 * times

    @rlhost.request
    def echo(self, yes: bool = False, n: int = 0, x: float = 0.0, text: str = "", list: list = [], table: dict = {}):
        """its arguments"""
        return [yes, n, x, text, list, table]

    @rlhost.request
    def wrong(self, what: str):
        if what == "raise":
            raise ValueError('no such key: "ä"')
        if what == "long":
            return "x" * 200_000
        if what == "crash":
            os._exit(3)


rlhost.serve(Oracle)
`

// TestRequest_ComponentsInCAnswerAsInGoAndPython asks components of three languages the same questions in one run.
func TestRequest_ComponentsInCAnswerAsInGoAndPython(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.copy("oracle-c", ctest.Build(t, ctest.Plugin, "../../sdk/c/native/testdata/oracle.c"))
	if err := os.Link(w.program, w.path(oracleProgram)); err != nil {
		t.Fatal(err)
	}
	w.write("oracle.py", oracleInPython)
	text := `rlhost = 1
[run]
name = "asked"
stop = { env_steps = 500_000_000, wall_time = "5m" }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
[plugin.python]
path = "./oracle.py"
` + fmt.Sprintf("interpreter = [%q]\n", w.python()) + `
[plugin.go]
path = "./oracle-go"
[plugin.c]
path = "./oracle-c"
stall = "2s"
`
	languages := []string{"c", "go", "python"}
	for _, l := range languages {
		text += fmt.Sprintf("[component.%s]\nplugin = %q\n", l, l)
	}
	w.write("p.toml", text)
	j := w.host("p.toml")
	const soon = 30 * time.Second
	for _, q := range []struct{ name, args, want string }{
		{"total", `{}`, `0`},
		{"total", `{"times":"x"}`, `E121 : the argument times is "x", want a whole number such as 3`},
		{"total", `{"times":1,"tim":1}`, `E121 : there is no argument tim`},
		{"total", `[]`, `E121 : the arguments are [], want a JSON object such as {"lr": 0.001}`},
		{"echo", `{"yes":true,"n":-5,"x":0.1,"text":"\u00e4\"\n","list":[1,{"a":null}],"table":{"b":[]}}`, `[true,-5,0.1,"ä\"\n",[1,{"a":null}],{"b":[]}]`},
		{"echo", `{"n":9007199254740993,"x":1e300,"text":"","list":[],"table":{}}`, `[false,9007199254740993,1e+300,"",[],{}]`},
		{"echo", `{"n":1,"n":2,"\u0078":3,"text":"","list":[],"table":{}}`, `[false,2,3,"",[],{}]`},
		{"wrong", `{"what":"raise"}`, `E122 ValueError: no such key: "ä"`},
		{"wrong", `{"what":"long"}`, `E124 : the answer has 200002 bytes, at most 122880`},
		{"wrong", `{"what":"none"}`, `null`},
		{"wrong", `{}`, `E121 : the argument what is missing`},
	} {
		for _, l := range languages {
			a := j.asked(l, q.name, q.args, soon)
			if !answersAs(a, q.want) {
				t.Errorf("%s: %s(%s): %s, want %s", l, q.name, q.args, asJSON(a), q.want)
			}
		}
	}
	if a := j.asked("c", "wrong", `{"what":"raise"}`, soon); a.Error == nil || !strings.HasPrefix(a.Error.Place, "oracle.c:") {
		t.Errorf("the place in C: %s", asJSON(a))
	}
	for _, l := range languages {
		if a := j.asked(l, "wrong", `{"what":"crash"}`, soon); a.Error == nil || a.Error.Code != control.CodeLost {
			t.Errorf("%s: a crash: %s", l, asJSON(a))
		}
		testkit.Until(t, "an answer of the next process", func() bool { return j.asked(l, "total", "{}", soon).Error == nil })
	}
	// A handler that does not return is killed with its process, which is started again.
	if a := j.asked("c", "wrong", `{"what":"hang"}`, 100*time.Millisecond); !a.TimedOut || a.Error == nil || a.Error.Code != control.CodeUnanswered {
		t.Errorf("a handler that hangs: %s", asJSON(a))
	}
	testkit.Until(t, "an answer after it", func() bool { return j.asked("c", "total", "{}", soon).Error == nil })
	w.fails(0, []string{"request", "c"}, "c  total(times integer?)", "numbers so far", "wrong(what text)")
	w.fails(0, []string{"request", "kind:oracle", "total"}, "c: 0\n", "go: 0\n", "python: 0\n")
	w.fails(exitFailed, []string{"request", "c", "wrong", `{"what": "raise"}`}, `c: error[E122]: ValueError: no such key: "ä"`)
	w.fails(exitFailed, []string{"request", "c", "wrong", `{"what": "half"}`}, `c: error[E124]: the answer is not JSON`)
	w.fails(exitUsage, []string{"request", "c", "totl"}, "error[E120]", `did you mean "total"?`)
}

// answersAs reports whether an answer is want: JSON of the same value, or the code, type and reason of an error.
func answersAs(a control.AskAnswer, want string) bool {
	if a.Error != nil {
		return fmt.Sprintf("%s %s: %s", a.Error.Code, strings.TrimPrefix(a.Error.Type, "main."), a.Error.Reason) == want
	}
	got, err := exactly(string(a.Reply))
	wanted, wrong := exactly(want)
	return errors.Join(err, wrong) == nil && reflect.DeepEqual(got, wanted)
}

// exactly decodes JSON, with whole numbers as they are written.
func exactly(text string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
