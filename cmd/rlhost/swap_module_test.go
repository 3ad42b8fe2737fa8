package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// A module that takes its time to compile costs the run nothing: it steps on meanwhile, and answers.
func TestSwapFault_ABigModuleCompilesDuringTheRun(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	w.env = []string{"XDG_CACHE_HOME=" + t.TempDir()} // nothing is compiled already
	w.write("big.wasm", string(grown(t, []byte(w.read(newVersion)), 192<<10)))
	j := w.host("cartpole.toml")
	beside := j.dial()
	var made []uint64
	var compiled string
	var r control.SwapReply
	err := j.client.Do(t.Context(), control.VerbSwap, w.swapTo("big.wasm"), &r, func(notice json.RawMessage) {
		var text string
		var s control.StatusReply
		if json.Unmarshal(notice, &text) != nil || beside.Do(t.Context(), control.VerbStatus, nil, &s, nil) != nil {
			t.Errorf("%s: no status meanwhile", notice)
		}
		made = append(made, s.Steps.Made)
		if strings.HasPrefix(text, "compiled") {
			compiled = text
			if made[len(made)-1] <= made[0] {
				t.Errorf("%s: env steps %v, want more of them meanwhile", text, made)
			}
		}
	})
	if err != nil || r.Outcome != control.Committed || compiled == "" {
		t.Fatalf("%v, %q, %+v", err, compiled, r)
	}
	t.Logf("%s while the run made %d env steps; stepping stood still for %.3f ms", compiled, made[1]-made[0], r.PauseMax)
	j.runsFile("big.wasm")
	j.goesOn()
	j.addsUp()
	j.stop()
}

// moduleFaults are pipelines whose environments fail, and the messages of the run that tries them.
var moduleFaults = []struct {
	what     string
	args     string
	sets     []string
	code     control.Code // of the refusal; empty if the fault comes later
	reason   string       // of it, or of the fault
	fallback bool         // by itself
	lost     bool         // env steps in the fault
}{
	{what: "traps in the trial", args: "fault=1,env=6,step=8", sets: []string{"swap.trial_envs=8"},
		code: control.CodeTrial, reason: `the trial speaks against .*env 6: trap in rl_step at step [0-9]+: .*walk.wasm runs on`},
	{what: "hangs in the trial", args: "fault=2,env=6,step=8", sets: []string{"swap.trial_envs=8", `env.walk.limits={step="100ms"}`},
		code: control.CodeTrial, reason: `the trial speaks against .*env 6: deadline in rl_step at step [0-9]+: .*walk.wasm runs on`},
	{what: "returns NaN in the trial", args: "fault=4,env=6,step=8", sets: []string{"swap.trial_envs=8"},
		code: control.CodeTrial, reason: `the trial speaks against .*env 6 .*NaN; .*walk.wasm runs on`},
	{what: "traps on probation", args: "fault=1,env=15,step=4011", sets: []string{"swap.probation=60s"},
		reason: `rollout.*trap in rl_step at step 4011`, fallback: true},
	{what: "hangs on probation", args: "fault=2,env=15,step=4011", sets: []string{"swap.probation=60s", `env.walk.limits={step="100ms"}`},
		reason: `rollout.*deadline in rl_step at step 4011`, fallback: true},
	{what: "returns NaN on probation", args: "fault=4,env=15,step=4011", sets: []string{"swap.probation=60s"},
		reason: `rollout.*output in rl_step at step 4011: .* NaN`, fallback: true},
	{what: "traps on probation, in a rollout that is new itself", args: "fault=1,env=15,step=4011",
		sets:   []string{"swap.probation=60s", "component.rollout.max_restarts=999"},
		reason: `rollout.*trap in rl_step at step 4011`, fallback: true},
	{what: "traps", args: "fault=1,env=15,step=40112", reason: `env 15: trap in rl_step at step 40112`, lost: true},
	{what: "hangs", args: "fault=2,env=15,step=40112", sets: []string{`env.walk.limits={step="100ms"}`},
		reason: `env 15: deadline in rl_step at step 40112`, lost: true},
	{what: "returns NaN", args: "fault=4,env=15,step=40112", reason: `env 15: output in rl_step at step 40112: .*NaN`, lost: true},
}

// Whatever the new environments do wrong, in a trial, on probation or after it, the run continues: with the old ones, or as after any fault.
func TestSwapFault_EnvironmentsThatGoWrong(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.host("walk.toml")
	for _, c := range moduleFaults {
		sets := append([]string{"env.walk.args={" + c.args + "}", "component.rollout.max_restarts=1000"}, c.sets...)
		q := w.reloadWith("walk.toml", sets...)
		before := j.status()
		if c.code != "" {
			j.fails(control.VerbReload, q, c.code, c.reason)
		} else {
			j.do(control.VerbReload, q, nil)
		}
		if c.lost {
			j.says(`environments restarted: .*` + c.reason)
		}
		s := j.quiet()
		note := instance(&s, "rollout").Note
		if c.fallback {
			j.wrote("rolled_back", "fallback", c.reason)
			j.says(`a new version has failed on probation; the previous one runs again.*` + c.reason)
			if !strings.HasPrefix(note, "rolled back: rollout") || !strings.Contains(note, "rollout env 15: ") || s.Swaps.RolledBack != before.Swaps.RolledBack+1 {
				t.Errorf("%s: status says %q, %+v", c.what, note, s.Swaps)
			}
		}
		if text := j.text(); strings.Contains(text, `fault = "`) != c.lost {
			t.Errorf("%s: pipeline.toml says\n%s", c.what, text)
		}
		j.goesOn()
		t.Logf("%s: %+v", c.what, j.addsUp("fault"))
		j.reload("walk.toml", "component.rollout.max_restarts=1000")
	}
	j.stop()
}

// text is pipeline.toml of the run's folder.
func (j *subject) text() string { return j.file("pipeline.toml") }

// Sections of a module.
const (
	sectionFunction = 3
	sectionCode     = 10
)

// grown returns a module with so many more bytes of code: its longest function again and again, which nothing calls.
func grown(t *testing.T, module []byte, more int) []byte {
	t.Helper()
	const head = 8
	out := bytes.Clone(module[:head])
	sections := map[byte][]byte{}
	var order []byte
	for rest := module[head:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if rest[0] != 0 {
			order = append(order, rest[0])
			sections[rest[0]] = rest[1+n : 1+n+int(size)]
		}
		rest = rest[1+n+int(size):]
	}
	types, code := items(sections[sectionFunction], false), items(sections[sectionCode], true)
	if len(types) != len(code) || len(types) == 0 {
		t.Fatalf("%d functions, %d bodies", len(types), len(code))
	}
	longest := 0
	for i := range code {
		if len(code[i]) > len(code[longest]) {
			longest = i
		}
	}
	for range more/len(code[longest]) + 1 {
		types, code = append(types, types[longest]), append(code, code[longest])
	}
	sections[sectionFunction], sections[sectionCode] = joined(types), joined(code)
	for _, id := range order {
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(sections[id])))
		out = append(out, sections[id]...)
	}
	return out
}

// items are the parts of a vector: numbers, or bytes with their size before them.
func items(section []byte, sized bool) (list [][]byte) {
	count, n := binary.Uvarint(section)
	for section = section[n:]; count > 0; count-- {
		value, n := binary.Uvarint(section)
		if sized {
			n += int(value)
		}
		list = append(list, section[:n])
		section = section[n:]
	}
	return list
}

func joined(items [][]byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(items))), bytes.Join(items, nil)...)
}

// A reload that replaces the rollout checks and tries its new environments as a swap does, and goes back to both.
func TestSwapFault_NewEnvironmentsOfANewRolloutAreTried(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.host("walk.toml")
	j.fails(control.VerbReload, w.reloadWith("walk.toml", "env.walk.args={fault=1,env=6,step=8}", "component.rollout.max_restarts=9",
		"swap.trial_envs=8"), control.CodeTrial, `the trial speaks against .*env 6: trap`)
	j.fails(control.VerbReload, w.reloadWith("walk.toml", "env.walk.args={fault=1,env=0,step=1}", "component.rollout.max_restarts=9"),
		control.CodeTrial, `fails check A01`)
	was := j.text()
	r := j.reload("walk.toml", "env.walk.args={fault=0}", "component.rollout.max_restarts=9")
	if len(r.Swaps) != 1 || r.Swaps[0].Checked == "" {
		t.Errorf("one component with other environments: %s", asJSON(r))
	}
	var back control.SwapReply
	j.do(control.VerbRollback, control.RollbackRequest{Component: "rollout"}, &back)
	if text := j.text(); back.Outcome != control.RolledBack || !strings.Contains(text, "max_restarts = 5") || strings.Contains(text, "args") {
		t.Errorf("%+v; the way back leads to\n%s, it was\n%s", back, text, was)
	}
	j.goesOn()
	j.addsUp()
	j.stop()
}

// Environments on probation may fail before the run's folder says that they run: they fall back all the same.
func TestSwapFault_ANewVersionFailsBeforeTheFolderHasIt(t *testing.T) {
	t.Parallel()
	w := newSwapShop(t)
	j := w.gated("walk.toml")
	h := j.hold("rename 0001/pipeline.toml")
	q := w.reloadWith("walk.toml", "env.walk.args={fault=1,env=15,step=100000}", "swap.probation=60s")
	answered := j.asks(t.Context(), control.VerbReload, q, nil, nil)
	h.wait(t)
	j.until("the new environments have failed", func(s *control.StatusReply) bool { return s.Steps.Reasons["fault"] > 0 })
	h.goOn()
	if err := j.answer(answered); err != nil {
		t.Error(err)
	}
	s := j.quiet()
	if note := instance(&s, "rollout").Note; s.Swaps.RolledBack != 1 || !strings.Contains(note, "rolled back: rollout env 15: trap in rl_step at step 100000") {
		t.Errorf("status says %q, %+v", note, s.Swaps)
	}
	if text := j.text(); strings.Contains(text, `fault = "`) {
		t.Errorf("pipeline.toml says\n%s", text)
	}
	j.wrote("rolled_back", "fallback", "trap in rl_step at step 100000")
	j.goesOn()
	j.addsUp("fault")
	j.stop()
}
