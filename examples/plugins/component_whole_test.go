package plugins_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/examples/plugins"
	"github.com/rlhost/rlhost/examples/plugins/testdata/whole/whole"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/author"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wasm"
	"github.com/rlhost/rlhost/plugins/wasm/component"
)

// Authors have the whole component model in each language: payloads' schemas, the instance's identity, outcomes of messages,
// columns by name, timers that are cancelled, the end of the run, and pause, resume and stop.
func TestComponent_TheWholeModelIsThereInEachLanguage(t *testing.T) {
	testWhole(t, "built in", author.Kind(whole.New)())
	r, err := wasm.New(wasm.Options{CacheDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	modules := component.NewModules(r)
	for language, path := range wholeModules(t) {
		c, err := modules.Component(component.Source{Source: env.Source{Name: "whole", Use: path, Grants: []string{"metric", "stop"}}})
		if err != nil {
			t.Fatal(language, err)
		}
		testWhole(t, language, c)
	}
	t.Cleanup(func() {
		if err := modules.Close(); err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// wholeModules builds the component in each language whose compiler is here.
func wholeModules(t *testing.T) map[string]string {
	t.Helper()
	dir, err := filepath.Abs("testdata/whole")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Reads(t, dir+"/*", dir+"/whole/*", "../../sdk/c/*.h", "../../sdk/rust/src/*")
	out, built := t.TempDir(), map[string]string{}
	built["Go"] = filepath.Join(out, "go.wasm")
	shell(t, dir, "", "GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags=-s -o "+built["Go"]+" .")
	clang := "clang-19"
	if _, err := exec.LookPath(clang); err != nil {
		clang = "clang"
	}
	if _, err := exec.LookPath(clang); err == nil {
		built["C"] = filepath.Join(out, "c.wasm")
		shell(t, dir, "", clang+" --target=wasm32 -O3 -Wall -Wextra -Werror -msimd128 -mbulk-memory -nostdlib -Wl,--no-entry,--stack-first -I "+root(t)+"/sdk/c whole.c -o "+built["C"])
	}
	rust := slices.IndexFunc(plugins.Guests(), func(g plugins.Guest) bool { return g.Component && g.Language.Name == "Rust" })
	if err := testkit.Rust(testkit.WasmTarget); err != nil {
		t.Logf("not tried in Rust: %v", err)
	} else if rust >= 0 {
		crate := filepath.Join(out, "crate")
		text, err := os.ReadFile(filepath.Join(dir, "whole.rs"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(crate, "src"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(crate, "src", "lib.rs"), text, 0o644); err != nil {
			t.Fatal(err)
		}
		cargo(t, crate, plugins.Guests()[rust])
		found, _ := filepath.Glob(filepath.Join(crate, "*.wasm"))
		if len(found) != 1 {
			t.Fatalf("modules %v", found)
		}
		built["Rust"] = found[0]
	}
	return built
}

func testWhole(t *testing.T, language string, c core.Component) {
	t.Helper()
	var other func(args json.RawMessage) (json.RawMessage, error)
	askOther := func(ask string, args json.RawMessage, within time.Duration, answer func(json.RawMessage, error)) {
		reply, err := other(args)
		if ask != "half" || within != time.Second || !sameJSON(string(args), `{"x":2.5}`) {
			t.Errorf("%s: it asks %s(%s) within %v", language, ask, args, within)
		}
		answer(reply, err)
	}
	r := plugintest.NewRig(t, c, plugintest.RigOptions{AskOther: askOther, Name: "whole[1]", Index: 1, Count: 3, Run: core.Run{Seed: 4, Synchronous: true},
		Grants: map[string][]string{"in": {"reward"}}}, plugintest.DecodeTable(nil))
	gauge := func(name string, want float64) {
		t.Helper()
		if got := r.Host.Stats.Gauge("whole/" + name).Value(); got != want {
			t.Errorf("%s: %s is %v, want %v", language, name, got, want)
		}
	}
	if m := c.Manifest(); m.Signals[0].Schema != 0x8000000000000009 || m.Slots[0].Schema != 7 {
		t.Errorf("%s: schemas %x and %x, want 8000000000000009 and 7", language, m.Signals[0].Schema, m.Slots[0].Schema)
	}
	gauge("me", 8e6+1e4+3e2+10+4)
	in := r.To("in")
	tell := func(m hostabi.Message) {
		t.Helper()
		if err := in.Emit(m); err != nil {
			t.Fatal(err)
		}
		r.MustSettle()
	}
	block, reward, done := oneBlock(t, r.Host.Arenas)
	tell(hostabi.Message{Handle: block})
	gauge("value", 5)
	gauge("named", 1)
	if got := reward(); got != 6 {
		t.Errorf("%s: the reward is %v, want 6", language, got)
	}
	done()
	tell(hostabi.Message{Kind: 2})
	gauge("cancelled", 1)
	tell(hostabi.Message{Kind: 1})
	gauge("outcomes", 222) // there is no wire
	pauser := c.(core.Pauser)
	pauser.Pause(func() {})
	gauge("state", 1)
	pauser.Resume()
	gauge("state", 2)
	testAnswers(t, language, r)
	for _, a := range []struct {
		reply    string
		err      error
		answered float64
		fault    float64
	}{
		{"1.25", nil, 1.25, 0}, {`{"name": "é", "y": -3}`, nil, -3, 0}, {"", core.ErrLate, -3, 123}, {"", fmt.Errorf("%w: gone", core.ErrLost), -3, 125},
		{"", &core.Raised{Type: "ValueError", Text: "no", Place: "x.py:1"}, -3, 122.1}, {"7", nil, 7, 0},
	} {
		other = func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(a.reply), a.err }
		tell(hostabi.Message{Kind: 4})
		gauge("answered", a.answered)
		gauge("fault", a.fault)
	}
	tell(hostabi.Message{Kind: 3})
	if !slices.Equal(r.Stops, []core.StopReason{core.StopEnvSteps}) {
		t.Errorf("%s: the run ends for %v", language, r.Stops)
	}
	idle(t, r)
	tell(hostabi.Message{Kind: 1})
	gauge("outcomes", 11) // one is sent, two wait for room
	if err := c.Stop(); err != nil {
		t.Errorf("%s: %v", language, err)
	}
	gauge("state", 3)
}

// testAnswers asks the component: it reads each kind of JSON, and says what is wrong.
func testAnswers(t *testing.T, language string, r *plugintest.Rig) {
	t.Helper()
	for args, want := range map[string]string{
		`{"x":0.1}`:     `{"x":0.2,"name":"","n":-1}`,
		`{"x":1e300}`:   `{"x":2e300,"name":"","n":-1}`,
		`{"x":1.5e-30}`: `{"x":3e-30,"name":"","n":-1}`,
		` { "n" : -7, "name":"a \"b\" \\ \u00e9\ud83d\ude00é\u0007" ,"x":12345678.25 } `: `{"x":24691356.5,"name":"a \"b\" \\ é😀é\u0007","n":-7}`,
		`{"x":-1}`:         "x: want 0 or more",
		`{"x":1,"n":9e99}`: "n",
	} {
		var reply json.RawMessage
		var failed error
		r.Host.Ask(t.Context(), "twice", json.RawMessage(args), func(r json.RawMessage, err error) { reply, failed = r, err }, func() { t.Errorf("%s answers twice", language) })
		r.MustSettle()
		if failed == nil && !sameJSON(string(reply), want) || failed != nil && !strings.Contains(failed.Error(), want) {
			t.Errorf("%s: %s is answered with %s, %v, want %s", language, args, reply, failed, want)
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// oneBlock returns a committed block with the reward 5, a function that reads its reward, and one that releases it.
func oneBlock(t *testing.T, set *arena.Set) (h hostabi.Handle, reward func() float32, done func()) {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	schema, err := trajectory.NewSchema(plugintest.New(plugintest.Script{}).Spec(), trajectory.Shape{Steps: 2, Envs: 1, Granted: "reward"})
	must(err)
	a, err := set.Add(arena.Config{Name: "blocks", Blocks: 1, BlockBytes: schema.Bytes, Schema: schema})
	must(err)
	loan, err := a.Loan()
	must(err)
	trajectory.Trajectory{Schema: schema, Mem: loan.Bytes()}.Float32(trajectory.Reward)[0] = 5
	h, err = loan.Commit()
	must(err)
	reward = func() float32 {
		lease, err := a.Lease(h)
		must(err)
		v := trajectory.Trajectory{Schema: schema, Mem: lease.Bytes()}.Float32(trajectory.Reward)[0]
		must(lease.Release())
		return v
	}
	return h, reward, func() { must(a.Release(h)) }
}

// idle connects out to a slot that never runs, with room for one message.
func idle(t *testing.T, r *plugintest.Rig) {
	t.Helper()
	l := loop.New("idle")
	c, err := bus.Connect(r.Host.Signal("out"), bus.NewSlot(l.NewReceiver("idle"), "in", "note", func(*hostabi.Message) {}), bus.Options{Depth: 1, Overflow: bus.Block})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.DisconnectNow()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
