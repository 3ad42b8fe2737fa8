package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/sdk/c/native/ctest"
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/process"
)

// askerProgram is the name by which this program is the asker in Go.
const askerProgram = "asker-go"

// askerGo asks as sdk/c/native/testdata/asker.c does.
type askerGo struct {
	host  component.Host
	count int
	last  string
}

// beAsker serves it.
func beAsker() {
	type times struct {
		Times any `json:"times"`
	}
	type numbers struct {
		N     any `json:"n"`
		X     any `json:"x"`
		Text  any `json:"text"`
		List  any `json:"list"`
		Table any `json:"table"`
	}
	type echoed struct {
		Yes any `json:"yes"`
		numbers
	}
	type what struct {
		What any `json:"what"`
	}
	type errand struct {
		Ask  any `json:"ask"`
		Args any `json:"args"`
	}
	type carried struct {
		Ask    string `json:"ask"`
		Args   string `json:"args"`
		Within int    `json:"within_ms,omitempty"`
	}
	process.Serve(process.Plugin{Components: map[string]func() component.Component{"asker": func() component.Component {
		a := &askerGo{}
		return &component.Declared{
			Asks: []component.Request{component.Asking[struct{}]("total", "without arguments"), component.Asking[times]("times", ""),
				component.Asking[echoed]("echo", ""), component.Asking[numbers]("numbers", ""), component.Asking[what]("wrong", ""),
				component.Asking[what]("burst", ""), component.Asking[errand]("other", "")},
			Requests: []component.Question{
				component.Asked("carry", "asks a question", func(q carried) (int, error) {
					a.host.Request(q.Ask, []byte(q.Args), time.Duration(q.Within)*time.Millisecond, a.told)
					return 0, nil
				}),
				component.Asked("last", "how many answers have come, and the last one", func(struct{}) ([]any, error) { return []any{a.count, a.last}, nil }),
			},
			OnStart: func(h component.Host) { a.host = h },
		}
	}}})
}

func (a *askerGo) told(reply []byte, err error) {
	a.count, a.last = a.count+1, string(reply)
	var none *component.Unanswered
	if errors.As(err, &none) {
		a.last = fmt.Sprintf("%s %s: %s", none.Code, none.Type, none.Text)
	}
}

// askerInPython asks as sdk/c/native/testdata/asker.c does.
const askerInPython = `import json

import rlhost


class Asker(rlhost.Component):
    asks = [rlhost.Ask("total"), rlhost.Ask("times", times=object),
            rlhost.Ask("echo", yes=object, n=object, x=object, text=object, list=object, table=object),
            rlhost.Ask("numbers", n=object, x=object, text=object, list=object, table=object),
            rlhost.Ask("wrong", what=object), rlhost.Ask("burst", what=object), rlhost.Ask("other", ask=object, args=object)]

    def start(self, host):
        self.came = [0, ""]

    @rlhost.request
    def carry(self, ask: str, args: str, within_ms: int = 0):
        self.host.request(ask, within_ms / 1000, **json.loads(args)).add_done_callback(self.told)

    def told(self, asked):
        try:
            text = json.dumps(asked.result())
        except rlhost.RequestError as e:
            text = f"{e.code} {e.type}: {e.reason}"
        self.came = [self.came[0] + 1, text]

    @rlhost.request
    def last(self):
        return self.came


rlhost.serve(Asker)
`

// carry has a component ask a question, and returns the answer that comes.
func (j *subject) carry(component, ask, args string, within time.Duration) string {
	j.t.Helper()
	before, _ := j.lastOf(component)
	errand, _ := json.Marshal(map[string]any{"ask": ask, "args": args, "within_ms": within.Milliseconds()}) // texts and numbers
	if a := j.asked(component, "carry", string(errand), time.Minute); a.Error != nil {
		j.t.Fatalf("%s: %s: %s", component, errand, asJSON(a))
	}
	var last string
	testkit.Until(j.t, "an answer to "+component, func() bool {
		now, text := j.lastOf(component)
		last = text
		return now > before
	})
	return last
}

// lastOf returns how many answers a component has got, and the last.
func (j *subject) lastOf(component string) (count int, text string) {
	j.t.Helper()
	var last []json.RawMessage
	if err := j.client.AskOne(j.t.Context(), component, "last", json.RawMessage("{}"), &last); err != nil || len(last) != 2 {
		j.t.Fatalf("%s: %v, %v\n%s", component, last, err, j.output)
	}
	if err := errors.Join(json.Unmarshal(last[0], &count), json.Unmarshal(last[1], &text)); err != nil {
		j.t.Fatal(err)
	}
	return count, text
}

// toldAs reports whether an asker has got want: JSON of the same value, or the code, type and text of an error.
func toldAs(got, want string) bool {
	if strings.HasPrefix(want, "E") {
		return strings.Replace(got, " main.", " ", 1) == want
	}
	return answersAs(control.AskAnswer{Reply: json.RawMessage(got)}, want)
}

// TestRequest_ComponentsOfEachLanguageAskTheSame has components of three languages and a module ask the same questions in one run. What answers panics,
// hangs, is killed and is swapped meanwhile.
func TestRequest_ComponentsOfEachLanguageAskTheSame(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.copy("oracle-c", ctest.Build(t, ctest.Plugin, "../../sdk/c/native/testdata/oracle.c"))
	w.copy("asker-c", ctest.Build(t, ctest.Plugin, "../../sdk/c/native/testdata/asker.c"))
	w.copy("asker.wasm", buildC(t, "askers/asker.c", false))
	for _, name := range []string{oracleProgram, askerProgram} {
		if err := os.Link(w.program, w.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.write("asker.py", askerInPython)
	text := `rlhost = 1
[run]
name = "asking"
stop = { wall_time = "10m" }
[swap]
probation = "0s" # the run stands still while the oracle's process is started again, whatever has been swapped
[plugin.oracle]
path = "./oracle-c"
stall = "10s" # within which the module is swapped
max_restarts = 100
[component.oracle]
plugin = "oracle"
[plugin.panics]
path = "./oracle-go"
[component.panics]
plugin = "panics"
[plugin.c]
path = "./asker-c"
[plugin.go]
path = "./asker-go"
[plugin.python]
path = "./asker.py"
` + fmt.Sprintf("interpreter = [%q]\n", w.python())
	languages := []string{"c", "go", "module", "python"}
	for i, l := range languages {
		from := fmt.Sprintf("plugin = %q", l)
		if l == "module" {
			from = "runtime = \"wasm\"\nuse = \"./asker.wasm\""
		}
		text += fmt.Sprintf("[component.%[1]s]\n%[3]s\nasks = { total = \"oracle.total\", times = \"oracle.total\", echo = \"oracle.echo\", numbers = \"oracle.echo\", "+
			"wrong = \"oracle.wrong\", burst = \"panics.wrong\", other = \"%[2]s.carry\" }\n", l, languages[(i+1)%len(languages)], from)
	}
	w.write("p.toml", text)
	j := w.beginWith("run", false, "p.toml")
	const soon = 30 * time.Second
	for _, q := range []struct{ ask, args, want string }{
		{"total", `{}`, `0`},
		{"times", `{"times":3}`, `0`},
		{"times", `{"times":"x"}`, `E121 : the argument times is "x", want a whole number such as 3`},
		{"times", `{"times":1.5}`, `E121 : the argument times is 1.5, want a whole number such as 3`},
		{"echo", `{"yes":true,"n":-5,"x":0.1,"text":"\u00e4\"","list":[1,{"a":null}],"table":{"b":[]}}`, `[true,-5,0.1,"ä\"",[1,{"a":null}],{"b":[]}]`},
		{"numbers", `{"n":9007199254740993,"x":1e300,"text":"","list":[],"table":{}}`, `[false,9007199254740993,1e+300,"",[],{}]`},
		{"wrong", `{"what":"raise"}`, `E122 ValueError: no such key: "ä"`},
		{"wrong", `{"what":"long"}`, `E124 : the answer has 200002 bytes, at most 122880`},
		{"wrong", `{"what":"none"}`, `null`},
		{"wrong", `{"what":1}`, `E121 : the argument what is 1, want a text`},
		{"burst", `{"what":"panic"}`, `E122 panic: of laughter`},
	} {
		for _, l := range languages {
			if got := j.carry(l, q.ask, q.args, soon); !toldAs(got, q.want) {
				t.Errorf("%s asks %s(%s): %s, want %s", l, q.ask, q.args, got, q.want)
			}
		}
	}
	j.askInACircle(languages)
	for _, l := range languages {
		if got, want := j.carry(l, "wrong", `{"what":"hang"}`, 50*time.Millisecond), "E123 : it did not answer in time"; got != want {
			t.Errorf("%s asks what hangs: %s, want %s", l, got, want)
		}
	}
	again := func() bool { return toldAs(j.carry(languages[0], "total", "{}", soon), "0") }
	testkit.Until(t, "an answer of the next process", again)
	j.killWhatIsAsked(languages)
	testkit.Until(t, "an answer of the next process", again)
	w.copy("asker2.wasm", w.path("asker.wasm"), 0, 2, 1, 'x') // with a section that says nothing
	j.swapWhatAsks(w)
	testkit.Until(t, "an answer of the next process", again)
	j.swapWhatIsAsked(w, languages)
}

// askInACircle has each component ask the next, and the last the first, whose own question waits meanwhile.
func (j *subject) askInACircle(languages []string) {
	j.t.Helper()
	errand := func(args string) string {
		text, _ := json.Marshal(map[string]any{"ask": "other", "args": args}) // texts
		return string(text)
	}
	args := `{"ask":"numbers","args":"{\"n\":5,\"x\":1,\"text\":\"\",\"list\":[],\"table\":{}}"}`
	for range len(languages) - 1 {
		args = errand(args)
	}
	first := languages[0]
	before, _ := j.lastOf(first)
	j.carry(first, "other", args, 0)
	testkit.Until(j.t, "two answers", func() bool {
		count, text := j.lastOf(first)
		return count == before+2 && toldAs(text, `[false,5,1,"",[],{}]`)
	})
}

// killWhatIsAsked kills the process that all components wait for.
func (j *subject) killWhatIsAsked(languages []string) {
	j.t.Helper()
	pid, before := j.pidOf("oracle"), map[string]int{}
	for _, l := range languages {
		before[l], _ = j.lastOf(l)
		if a := j.asked(l, "carry", `{"ask":"wrong","args":"{\"what\":\"hang\"}"}`, time.Minute); a.Error != nil {
			j.t.Fatal(asJSON(a))
		}
	}
	testkit.Until(j.t, "the questions are under way", func() bool { return j.asked("oracle", "total", "{}", 20*time.Millisecond).Error != nil })
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		j.t.Fatal(err)
	}
	for _, l := range languages {
		testkit.Until(j.t, "the news at "+l, func() bool { count, _ := j.lastOf(l); return count > before[l] })
		if _, got := j.lastOf(l); got != "E125 : it has ended before it answered" {
			j.t.Errorf("%s asks what is killed: %s", l, got)
		}
	}
}

// swapWhatAsks replaces the module while it waits for an answer. The next one has its state, does not get the answer, and asks on.
func (j *subject) swapWhatAsks(w *workshop) {
	j.t.Helper()
	before, text := j.lastOf("module")
	if a := j.asked("module", "carry", `{"ask":"wrong","args":"{\"what\":\"hang\"}"}`, time.Minute); a.Error != nil {
		j.t.Fatal(asJSON(a))
	}
	w.write("p.toml", strings.Replace(w.read("p.toml"), "./asker.wasm", "./asker2.wasm", 1))
	if r := j.reload("p.toml"); r.Outcome != control.Committed || len(r.Swaps) != 1 || r.Swaps[0].Dropped != 0 {
		j.t.Errorf("the swap of what asks: %s", asJSON(r))
	}
	testkit.Until(j.t, "the end of what hangs", func() bool { return j.asked("oracle", "total", "{}", time.Minute).Error == nil })
	if count, now := j.lastOf("module"); count != before || now != text {
		j.t.Errorf("after the swap the module has got %d answers, the last %q, want %d and %q", count, now, before, text)
	}
	if got := j.carry("module", "echo", `{"yes":1,"n":2,"x":3,"text":"","list":[],"table":{}}`, time.Minute); !strings.HasPrefix(got, "E121 ") {
		j.t.Errorf("after the swap the module got %s", got)
	}
	if got := j.carry("module", "total", "{}", time.Minute); !toldAs(got, "0") {
		j.t.Errorf("after the swap the module got %s", got)
	}
}

// swapWhatIsAsked has all components ask while what answers is replaced: each question has one answer, of the former process or of the next, or is
// lost.
func (j *subject) swapWhatIsAsked(w *workshop, languages []string) {
	j.t.Helper()
	begun, over := make([]atomic.Int64, len(languages)), make(chan struct{})
	start := make([]int, len(languages))
	done := make(chan struct{}, len(languages))
	for i, l := range languages {
		start[i], _ = j.lastOf(l)
		client := j.dial()
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-over:
					return
				default:
				}
				err := client.AskOne(j.t.Context(), l, "carry", json.RawMessage(`{"ask":"total","args":"{}"}`), new(any))
				if err == nil {
					begun[i].Add(1)
				} else if !strings.Contains(err.Error(), "too many") {
					j.t.Error(err)
					return
				}
			}
		}()
	}
	w.write("p.toml", strings.Replace(w.read("p.toml"), `path = "./oracle-c"`, `path = "./oracle-go"`, 1))
	if r := j.reload("p.toml"); r.Outcome != control.Committed || len(r.Swaps) != 1 || r.Swaps[0].Dropped != 0 {
		j.t.Errorf("the swap: %s", asJSON(r))
	}
	for i := range languages {
		before := begun[i].Load()
		testkit.Until(j.t, "questions after the swap", func() bool { return begun[i].Load() > before+10 })
	}
	close(over)
	for range languages {
		<-done
	}
	for i, l := range languages {
		testkit.Until(j.t, fmt.Sprintf("%d answers to %s", begun[i].Load(), l), func() bool {
			count, _ := j.lastOf(l)
			return int64(count-start[i]) == begun[i].Load()
		})
		if got := j.carry(l, "total", "{}", time.Minute); !toldAs(got, "0") {
			j.t.Errorf("%s after the swap: %s", l, got)
		}
	}
}
