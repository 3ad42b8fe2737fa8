package component

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
)

// replying is a guest with a request that does that and returns what is on the stack.
func replying(code asm.Code) built {
	m := hostabi.Manifest{Name: "built@1", Requests: []hostabi.Request{{Name: "ask", Doc: "a question", Args: []hostabi.RequestArg{{Name: "n", Type: hostabi.RequestInteger, Optional: true}}}},
		Signals: []hostabi.ManifestPort{{Name: "out", Payload: "note"}}}
	return built{functions: map[string]asm.Code{hostabi.ExportRequest: code, hostabi.ExportSlot: asm.Const(0)}, manifest: m.Describe()}
}

// question is an answer of a component, or its error.
type question struct {
	reply json.RawMessage
	err   error
}

// questioned asks a component on its loop.
func questioned(t *testing.T, r *plugintest.Rig, args string) question {
	t.Helper()
	var q question
	r.Host.Ask(context.Background(), "ask", json.RawMessage(args), func(reply json.RawMessage, err error) { q = question{reply, err} }, func() { t.Error("answered twice") })
	must(t, r.Settle())
	return q
}

// echo answers with the arguments: they lie where RequestCall says, with the length that it says.
func echo() asm.Code {
	return asm.Get(2) + asm.Get(0) + asm.Get(0) + asm.Load(8) + asm.Add + asm.Get(0) + asm.Load(12) + asm.MemoryCopy + asm.Get(0) + asm.Load(12)
}

func TestAnswer_OfAModule(t *testing.T) {
	r, g := started(t, source(file(t, replying(echo()).bytes()), everything...), plugintest.RigOptions{}, nil)
	for range 3 {
		if q := questioned(t, r, `{"n": 5}`); q.err != nil || string(q.reply) != `{"n": 5}` {
			t.Errorf("%s, %v, want the arguments", q.reply, q.err)
		}
	}
	if m := g.Manifest(); len(m.Requests) != 1 || m.Requests[0].String() != "ask(n integer?)" {
		t.Errorf("requests %v, want ask(n integer?)", m.Requests)
	}
	if given := len(g.run.given); given != len(g.slots)+1 {
		t.Errorf("%d pieces of the guest's memory are in use, want that of the answer", given)
	}
}

// A guest that says no, has a fault, never returns or answers with what is none: the asker is told, and the component continues.
func TestAnswer_OfAModuleThatFails(t *testing.T) {
	note := asm.Const(sentAt) + asm.Const(0) + asm.Store(0)
	for name, c := range map[string]struct {
		code   asm.Code
		says   string
		faults uint64
		is     func(error) bool
	}{
		"a status":           {asm.Const(int32(hostabi.StatusInternal)), "words of a guest", 0, isRaised("")},
		"a wrong argument":   {asm.Const(int32(hostabi.StatusArgument)), "words of a guest", 0, isArgs},
		"a trap":             {asm.Unreachable + asm.Const(0), "unreachable", 1, isRaised("trap")},
		"no end":             {forever + asm.Const(0), "limit", 1, isRaised("deadline")},
		"too long an answer": {asm.Const(hostabi.MaxRequestBytes + 1), "122881 bytes, at most 122880", 0, isAnswer},
		"no JSON":            {asm.Const(4), "not JSON", 0, isAnswer},
		"no answer":          {asm.Const(0), "not JSON", 0, isAnswer},
		"a message":          {note + asm.Const(0) + asm.Const(sentAt) + asm.Call(emit), "words of a guest", 0, isRaised("")},
	} {
		t.Run(name, func(t *testing.T) {
			s := source(file(t, replying(asm.Get(0)+asm.Load(12)+asm.Const(2)+asm.Eq+asm.If+asm.Void+echo()+asm.Return+asm.End+c.code).bytes()), everything...)
			s.Limits.Step = 50 * time.Millisecond
			r, g := started(t, s, plugintest.RigOptions{}, nil)
			if q := questioned(t, r, `{"n": 5}`); q.err == nil || !c.is(q.err) || !strings.Contains(q.err.Error(), c.says) {
				t.Errorf("%s, %#v, want %q", q.reply, q.err, c.says)
			}
			if g.faults.Value() != c.faults {
				t.Errorf("%d faults, want %d", g.faults.Value(), c.faults)
			}
			if q := questioned(t, r, `{}`); q.err != nil || string(q.reply) != `{}` {
				t.Errorf("then it answers %s, %v", q.reply, q.err)
			}
		})
	}
}

func isRaised(kind string) func(error) bool {
	return func(err error) bool {
		var e *core.Raised
		return errors.As(err, &e) && e.Type == kind
	}
}

func isArgs(err error) bool { return errors.As(err, new(*core.ArgsError)) }

func isAnswer(err error) bool { return errors.Is(err, core.ErrAnswer) }

// A guest whose restarts are spent is lost, and what is asked of it then too.
func TestAnswer_OfAModuleThatIsLost(t *testing.T) {
	s := source(file(t, replying(asm.Unreachable+asm.Const(0)).bytes()), everything...)
	s.MaxRestarts = 0
	r, _ := started(t, s, plugintest.RigOptions{}, nil)
	for range 2 {
		var q question
		r.Host.Ask(context.Background(), "ask", json.RawMessage(`{}`), func(reply json.RawMessage, err error) { q = question{reply, err} }, func() {})
		if !errors.Is(q.err, core.ErrLost) {
			t.Errorf("%v, want ErrLost", q.err)
		}
	}
	if err := r.Settle(); err == nil {
		t.Error("the run continues")
	}
}

func TestAnswer_NeedsTheExport(t *testing.T) {
	b := replying(asm.Const(0))
	b.functions[hostabi.ExportRequest] = absent
	err := made(t, source(file(t, b.bytes()), everything...)).Configure(plugintest.DecodeTable(nil))
	if err == nil || !strings.Contains(err.Error(), "does not export rl_request") {
		t.Errorf("%v, want the name of the export", err)
	}
}
