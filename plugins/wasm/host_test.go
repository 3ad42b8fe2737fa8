package wasm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/wasm/guest"
	"github.com/rlhost/rlhost/plugins/wasm/internal/asm"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// What package guest gives its guests: lines at once, bytes and vectors of one call, the cost of a line, how far the clock goes in a step.
const (
	burst      = 100
	hostPiece  = 64 << 10
	maxVectors = 1024
	lineWeight = 100
	stepNanos  = int64(time.Millisecond)
)

// calling returns a guest that imports one function and calls it in each step with code before it.
func calling(module, name string, params, results []byte, args asm.Code) wasmtest.Guest {
	after := asm.Code("")
	if len(results) > 0 {
		after = asm.Set(2)
		if results[0] == asm.I64 {
			// the low half as the result
			after = "\xa7" + asm.Set(2)
		}
	}
	keep := asm.Code("")
	if len(results) > 0 {
		keep = asm.Const(wasmtest.CounterAt) + asm.Get(2) + asm.Store(0)
	}
	return wasmtest.Guest{
		Before:    func(m *asm.Module) { m.Import(module, name, params, results) },
		Functions: map[string]asm.Code{hostabi.ExportStep: args + asm.Call(0) + after + keep + asm.Const(0)},
	}
}

// result returns the result of the last step's host function, modulo 2^32.
func result(e *Env) uint32 { return binary.LittleEndian.Uint32(e.inst.View(wasmtest.CounterAt, 4)) }

func dataOf(s string) func(m *asm.Module) {
	return func(m *asm.Module) { m.Data(20000, []byte(s)) }
}

// logged returns an Env that logs into a buffer.
func logged(t *testing.T, g wasmtest.Guest, grants ...string) (*Env, *bytes.Buffer) {
	t.Helper()
	var buf bytes.Buffer
	r, err := New(Options{CacheDir: testCache, Log: slog.New(slog.NewTextHandler(&buf, nil))})
	must(t, err)
	t.Cleanup(func() { r.Close() })
	p := load(t, r, "guest.wasm", g.Bytes(), env.Source{Grants: grants})
	e, _ := opened(t, p, env.Options{Envs: 2})
	return e, &buf
}

func TestLog_GoesOutWithItsComponentAndNotTooOften(t *testing.T) {
	g := calling("rl", "log", asm.I32s(3), nil, asm.Const(2)+asm.Const(20000)+asm.Const(5))
	g.After = dataOf("a\xffb\nc")
	e, buf := logged(t, g, module.GrantLog)
	for range 3 * burst {
		must(t, e.Step(0))
	}
	lines := strings.Split(strings.TrimSpace(buf.String()), "\n")
	if len(lines) < burst || len(lines) > 2*burst {
		t.Errorf("%d lines of %d went out", len(lines), 3*burst)
	}
	if want := `level=WARN msg="a?b\nc" component=rollout[0]`; !strings.HasSuffix(lines[0], want) {
		t.Errorf("line is %s, want %s", lines[0], want)
	}
}

func TestLog_OutOfMemoryIsNotSaid(t *testing.T) {
	e, buf := logged(t, calling("rl", "log", asm.I32s(3), nil, asm.Const(-1)+asm.Const(-5)+asm.Const(-1)), module.GrantLog)
	if err := e.Step(0); err != nil || buf.Len() > 0 {
		t.Errorf("Step = %v, logged %s", err, buf)
	}
}

func TestLogEnabled_FollowsTheLog(t *testing.T) {
	for level, want := range []uint32{0, 1, 1, 1} {
		e, _ := logged(t, calling("rl", "log_enabled", asm.I32s(1), asm.I32s(1), asm.Const(int32(level))), module.GrantLog)
		must(t, e.Step(0))
		if got := result(e); got != want {
			t.Errorf("level %d = %d, want %d", level, got, want)
		}
	}
}

// metricGuest reports 1.5 in each step, for the environment of that index.
func metricGuest(name string, index int32) wasmtest.Guest {
	report := asm.Const(index) + asm.Const(20000) + asm.Const(int32(len(name))) + "\x44\x00\x00\x00\x00\x00\x00\xf8\x3f" + asm.Const(0)
	g := calling("rl", "metric_env", []byte{asm.I32, asm.I32, asm.I32, asm.F64, asm.I32}, nil, report)
	g.After = dataOf(name)
	return g
}

func TestMetric_ReachesTheHostWithItsEnvironment(t *testing.T) {
	for index, want := range map[int32]string{1: "[1 height=1.5 1 height=1.5]", 2: "[]", -1: "[]"} {
		testMetric(t, index, want)
	}
}

func testMetric(t *testing.T, index int32, want string) {
	p := load(t, newRuntime(t), "guest.wasm", metricGuest("height", index).Bytes(), env.Source{Grants: []string{module.GrantMetric}})
	var got []string
	e, _ := opened(t, p, env.Options{Envs: 2, Metric: func(m env.Metric) { got = append(got, fmt.Sprint(m.Env, " ", m.Name, "=", m.Value)) }})
	for range 2 {
		must(t, e.Step(0))
	}
	if fmt.Sprint(got) != want {
		t.Errorf("metrics %v, want %s", got, want)
	}
	e.inst.SetOwner(guest.Owner{Metric: func(env.Metric) {}})
	if n := testing.AllocsPerRun(100, func() { _ = e.Step(0) }); n != 0 {
		t.Errorf("%v allocations a step with a metric", n)
	}
}

// A host that is called back may not call the same Env: the guest is in the middle of something.
func TestEnv_RefusesCallsDuringACall(t *testing.T) {
	g := metricGuest("m", 0)
	p := load(t, newRuntime(t), "guest.wasm", g.Bytes(), env.Source{Grants: []string{module.GrantMetric}})
	var e *Env
	var errs []error
	e = newEnv(t, p, env.Options{Envs: 2, Metric: func(env.Metric) {
		errs = append(errs, e.Close(), e.Step(0), e.Renew(), e.Reset(0, nil, nil))
		_, err := e.Snapshot()
		errs = append(errs, err)
	}})
	b := blocks(t, p.Spec(), trajectory.Shape{Steps: 4, Envs: 2}, 1)[0]
	must(t, e.Bind(b))
	must(t, e.Step(0))
	for k, err := range errs {
		if !errors.Is(err, env.ErrUnsupported) {
			t.Errorf("call %d within a call = %v", k, err)
		}
	}
	if err := e.Step(1); err != nil {
		t.Errorf("Step afterwards = %v", err)
	}
}

func TestClock_GoesByStepsAlone(t *testing.T) {
	e, _ := logged(t, calling("rl", "clock_ns", nil, []byte{asm.I64}, ""), module.GrantClock)
	for k := range 3 {
		must(t, e.Step(0))
		if got, want := result(e), uint32(int64(k+1)*stepNanos); got != want {
			t.Errorf("step %d: clock %d, want %d", k, got, want)
		}
	}
}

// randomGuest asks for 21 bytes in each step, for the environment of that index, and of a place in memory.
func randomGuest(env, at int) wasmtest.Guest {
	g := calling(module.WASI, "random_get", asm.I32s(2), asm.I32s(1), asm.Const(int32(at))+asm.Const(21))
	g.After = func(m *asm.Module) { m.Func(hostabi.ExportCurrentEnv, nil, asm.I32s(1), 0, asm.Const(int32(env))) }
	return g
}

func TestRandomGet_ComesFromTheSeed(t *testing.T) {
	draw := func(index int, seed uint64, seeds []uint64) string {
		p := load(t, newRuntime(t), "guest.wasm", randomGuest(index, 20000).Bytes(), env.Source{})
		b := blocks(t, p.Spec(), trajectory.Shape{Steps: 4, Envs: 2}, 1)[0]
		e := newEnv(t, p, env.Options{Envs: 2, Seed: seed})
		must(t, e.Bind(b))
		must(t, e.Reset(0, nil, seeds))
		var all string
		for range 2 {
			must(t, e.Step(0))
			all += string(e.inst.View(20000, 21))
		}
		return all
	}
	first := draw(0, 1, nil)
	if first != draw(0, 1, nil) {
		t.Error("the same seed gives other bytes")
	}
	if first == draw(0, 2, nil) || first == draw(1, 1, nil) {
		t.Error("other seeds or environments have the same bytes")
	}
	if first[:21] == first[21:] {
		t.Error("the stream repeats itself")
	}
	if reset := draw(0, 1, []uint64{5, 6}); reset == first || reset != draw(1, 9, []uint64{6, 5}) {
		t.Error("after a reset with seeds the bytes are not those of the environment's seed")
	}
}

func TestStep_TrapTellsWhatWasWrittenToStderr(t *testing.T) {
	// One vector: the text at 20000.
	vector := "\x20\x4e\x00\x00\x20\x00\x00\x00"
	g := calling(module.WASI, "fd_write", asm.I32s(4), asm.I32s(1), asm.Const(2)+asm.Const(21000)+asm.Const(1)+asm.Const(21100))
	g.Functions[hostabi.ExportStep] += asm.Unreachable
	g.Functions[hostabi.ExportLastError] = wasmtest.Absent
	g.After = func(m *asm.Module) {
		m.Data(20000, []byte("panic: pole: gone\n\ngoroutine 1...."))
		m.Data(21000, []byte(vector))
	}
	e, buf := logged(t, g)
	err := e.Step(0)
	want := `rollout[0]: trap in rl_step at step 1: unreachable in function 8: "panic: pole: gone" (guest.wasm)`
	if err == nil || err.Error() != want {
		t.Errorf("Step = %v, want %s", err, want)
	}
	if buf.Len() > 0 {
		t.Errorf("logged without a grant: %s", buf)
	}
	e, buf = logged(t, g, module.GrantLog)
	_ = e.Step(0)
	if !strings.Contains(buf.String(), `msg="panic: pole: gone" component=rollout[0]`) {
		t.Errorf("log is %s", buf)
	}
}

// Lines that a guest writes without the grant are counted, and the count is logged at its end; a check shows the first lines.
func TestWASI_TellsHowMuchWasNotShown(t *testing.T) {
	g := calling("wasi_snapshot_preview1", "fd_write", asm.I32s(4), asm.I32s(1), asm.Const(1)+asm.Const(21000)+asm.Const(1)+asm.Const(22000))
	before := g.After
	g.After = func(m *asm.Module) {
		if before != nil {
			before(m)
		}
		m.Data(20000, []byte("up\n\ndown\n"))
		m.Data(21000, []byte("\x20\x4e\x00\x00\x09\x00\x00\x00"))
	}
	told := map[int]string{0: "", 3: ", the first 3 are shown"}
	for shown, want := range map[int]string{0: "", 3: `msg=up component=rollout[0]` + "\n" + `msg=down component=rollout[0]` + "\n" + `msg=up component=rollout[0]` + "\n"} {
		var buf bytes.Buffer
		plain := slog.NewTextHandler(&buf, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})
		r, err := New(Options{CacheDir: testCache, Log: slog.New(plain), Shown: shown})
		must(t, err)
		p, err := r.Load(t.Context(), "guest.wasm", g.Bytes(), env.Source{})
		must(t, err)
		e, _ := opened(t, p.(*Plugin), env.Options{Envs: 2})
		for range 600 {
			must(t, e.Step(0))
		}
		must(t, e.Close())
		must(t, p.Close())
		must(t, r.Close())
		want += fmt.Sprintf(`msg="guest.wasm: the guest wrote 1,200 lines%s; grants = [\"log\"] in its table shows them, --grant log on a command line"`, told[shown]) + "\n"
		if got := buf.String(); got != want {
			t.Errorf("with %d lines shown:\n%s\nwant\n%s", shown, got, want)
		}
	}
}

func TestWASI_GivesNothingAway(t *testing.T) {
	const fault, bad, noSys = 21, 8, 52
	i32, i64 := byte(asm.I32), byte(asm.I64)
	cases := []struct {
		name   string
		params []byte
		args   asm.Code
		want   uint32
	}{
		{"args_sizes_get", asm.I32s(2), asm.Const(20000) + asm.Const(20004), 0},
		{"args_sizes_get", asm.I32s(2), asm.Const(-1) + asm.Const(20004), fault},
		{"environ_get", asm.I32s(2), asm.Const(-1) + asm.Const(-1), 0},
		{"clock_time_get", []byte{i32, i64, i32}, asm.Const(0) + asm.Const64(0) + asm.Const(20000), 0},
		{"clock_time_get", []byte{i32, i64, i32}, asm.Const(0) + asm.Const64(0) + asm.Const(-4), fault},
		{"clock_res_get", asm.I32s(2), asm.Const(0) + asm.Const(20000), 0},
		{"fd_write", asm.I32s(4), asm.Const(3) + asm.Const(0) + asm.Const(0) + asm.Const(0), bad},
		{"fd_write", asm.I32s(4), asm.Const(1) + asm.Const(0) + asm.Const(1<<29) + asm.Const(0), 28},
		{"fd_write", asm.I32s(4), asm.Const(1) + asm.Const(-8) + asm.Const(2) + asm.Const(0), fault},
		{"fd_read", asm.I32s(4), asm.Const(0) + asm.Const(0) + asm.Const(0) + asm.Const(20000), 0},
		{"fd_read", asm.I32s(4), asm.Const(5) + asm.Const(0) + asm.Const(0) + asm.Const(20000), bad},
		{"fd_fdstat_get", asm.I32s(2), asm.Const(1) + asm.Const(20000), 0},
		{"fd_fdstat_get", asm.I32s(2), asm.Const(3) + asm.Const(20000), bad},
		{"fd_prestat_get", asm.I32s(2), asm.Const(3) + asm.Const(20000), bad},
		{"path_open", []byte{i32, i32, i32, i32, i32, i64, i64, i32, i32}, asm.Const(3) + asm.Const(0) + asm.Const(0) + asm.Const(0) +
			asm.Const(0) + asm.Const64(0) + asm.Const64(0) + asm.Const(0) + asm.Const(0), bad},
		{"sock_send", asm.I32s(5), asm.Const(3) + asm.Const(0) + asm.Const(0) + asm.Const(0) + asm.Const(0), bad},
		{"random_get", asm.I32s(2), asm.Const(20000) + asm.Const(9), 0},
		{"random_get", asm.I32s(2), asm.Const(20000) + asm.Const(-1), fault},
		{"sched_yield", nil, "", 0},
		{"proc_raise", asm.I32s(1), asm.Const(9), noSys},
		{"poll_oneoff", asm.I32s(4), asm.Const(20000) + asm.Const(21000) + asm.Const(2) + asm.Const(22000), 0},
		{"poll_oneoff", asm.I32s(4), asm.Const(20000) + asm.Const(21000) + asm.Const(-1) + asm.Const(22000), 28},
	}
	for _, c := range cases {
		e, _ := logged(t, calling(module.WASI, c.name, c.params, asm.I32s(1), c.args))
		if err := e.Step(0); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := result(e); got != c.want {
			t.Errorf("%s = %d, want %d", c.name, got, c.want)
		}
	}
}

func TestPoll_WaitsOnTheVirtualClock(t *testing.T) {
	subscription := make([]byte, 48)
	subscription[0] = 0x77 // the guest's mark
	binary.LittleEndian.PutUint64(subscription[24:], uint64(time.Hour))
	g := calling(module.WASI, "poll_oneoff", asm.I32s(4), asm.I32s(1), asm.Const(20000)+asm.Const(21000)+asm.Const(1)+asm.Const(22000))
	g.After = func(m *asm.Module) { m.Data(20000, subscription) }
	e, _ := logged(t, g)
	must(t, e.Step(0))
	s := e.inst.SaveWhole(nil).State
	if got, want := int64(s.Steps)*stepNanos+s.Skipped, int64(time.Hour)+stepNanos; got != want {
		t.Errorf("clock %d, want %d", got, want)
	}
	if event := e.inst.View(21000, 32); event[0] != 0x77 || event[8] != 0 || result(e) != 0 {
		t.Errorf("event %v", event)
	}
}

// Work that the host does for a guest counts like the guest's own: a single call that is asked for more than there is
// time for ends in the middle.
func TestHostCalls_EndWithTheDeadline(t *testing.T) {
	const size = 60 << 20
	all := asm.Const(1<<20) + asm.Const(size)
	g := calling(module.WASI, "random_get", asm.I32s(2), asm.I32s(1), all)
	g.Pages = size>>16 + 17
	p := load(t, newRuntime(t), "guest.wasm", g.Bytes(), env.Source{Limits: env.Limits{Step: wasmtest.TwoSlices}})
	e, _ := opened(t, p, env.Options{Envs: 1})
	var f *env.Fault
	if err := e.Step(0); !errors.As(err, &f) || f.Kind != env.FaultDeadline {
		t.Errorf("Step = %v, want a deadline", err)
	}
	if filled := bytes.Count(e.inst.View(1<<20, size), []byte{0}) < size/2; filled {
		t.Error("all of the memory was filled nevertheless")
	}
}

// A thousand times all memory is not written by one call, whatever the guest asks for, and the rest is counted.
func TestWASI_WriteTakesAPiece(t *testing.T) {
	const size = 1 << 20
	g := calling(module.WASI, "fd_write", asm.I32s(4), asm.I32s(1), asm.Const(1)+asm.Const(30000)+asm.Const(maxVectors)+asm.Const(21100))
	g.Pages = size>>16 + 17
	g.Functions[hostabi.ExportStep] = asm.Const(1<<20) + asm.Const('\n') + asm.Const(size) + asm.MemoryFill +
		asm.Const(1<<20) + asm.Const('x') + asm.Const(1000) + asm.MemoryFill + g.Functions[hostabi.ExportStep]
	vector := binary.LittleEndian.AppendUint32(nil, 1<<20+999)
	vector = binary.LittleEndian.AppendUint32(vector, size-999)
	g.After = func(m *asm.Module) { m.Data(30000, bytes.Repeat(vector, maxVectors)) }
	e, buf := logged(t, g, module.GrantLog)
	before := e.FuelUsed()
	must(t, e.Step(0))
	written := binary.LittleEndian.Uint32(e.inst.View(21100, 4))
	if status := result(e); status != 0 || written != hostPiece {
		t.Errorf("fd_write = %d, %d bytes written, want %d", status, written, hostPiece)
	}
	if burned, least := e.FuelUsed()-before, uint64(size/4+hostPiece+(hostPiece-1)*lineWeight); burned < least {
		t.Errorf("it burned %d units of fuel, want %d or more", burned, least)
	}
	if got := strings.Count(buf.String(), "\n"); got != 1 {
		t.Errorf("%d lines were logged, want the one that is not empty", got)
	}
	for range 4 * burst {
		must(t, e.Step(0))
	}
	must(t, e.Close())
	// The next line that goes out says how many were left out, or Close if there is none.
	if got := strings.Count(buf.String(), "\n"); got > 3*burst || !strings.Contains(buf.String(), "lines_dropped=") {
		t.Errorf("%d lines were logged:\n%.300s", got, buf.String())
	}
}
