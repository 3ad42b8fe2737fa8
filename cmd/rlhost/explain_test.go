package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/plugins/wasm/module"

	"github.com/rlhost/rlhost/pipeline"
	"github.com/rlhost/rlhost/pipeline/dev"
	"github.com/rlhost/rlhost/pipeline/players"
	"github.com/rlhost/rlhost/pipeline/session"
)

func TestExplain_HasAPageForEveryCodeThatIsPrinted(t *testing.T) {
	codes := []string{
		module.CodeMissing, module.CodeCommand, module.CodeFormat, module.CodeExport, module.CodeImport, module.CodeFeature,
		module.CodeDescription, module.CodeStart, module.CodeFuture, "E097", "E100", "E051", "E047", "E048", session.CodeExport, session.CodePage, ppo.CodeGradient, pipeline.CodeOverdue, players.CodeGone, players.CodeUnrated,
		codeFolder, codeNotBuilt, codeNoCompiler, dev.CodeBuild, dev.CodeTimeout, dev.CodeNothing, dev.CodeNoBuild, dev.CodeNoFile,
	}
	for kind := env.FaultTrap; kind <= env.FaultOutput; kind++ {
		codes = append(codes, faultCode(&env.Fault{Kind: kind}))
	}
	seen := map[string]bool{}
	for _, code := range codes {
		page, ok := explain(strings.ToLower(code))
		if !ok || !strings.HasPrefix(page, code+" ") || !strings.Contains(page, "Fix: ") {
			t.Errorf("page of %s: %t, %q", code, ok, page)
		}
		if seen[code] {
			t.Errorf("two kinds of mistakes have the code %s", code)
		}
		seen[code] = true
	}
	for _, code := range []string{"", "R", "#", "R0", "R0100"} {
		if page, ok := explain(code); ok {
			t.Errorf("explain(%q) = %q, want none", code, page)
		}
	}
}

// An error that ends a run and has its own code is printed with the code and the remedy.
func TestMessage_HasTheCodeOfTheErrorThatEndedARun(t *testing.T) {
	err := fmt.Errorf("learner: %w", &table.Error{Code: ppo.CodeGradient, Reason: "gradient of optimiser step 1: not a finite number", Help: "use less"})
	want := "error[R020]: learner: gradient of optimiser step 1: not a finite number\n  help: use less; see rlhost explain R020"
	if got := message(err); got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
}

func TestMessage_LeavesOutWhoPassedAFaultOn(t *testing.T) {
	f := &env.Fault{Kind: env.FaultDeadline, Name: "rollout[1]", Source: "a.wasm", Call: "rl_step", Env: 17,
		Step: 3, Err: errors.New("stopped after its limit of 20ms")}
	err := fmt.Errorf("loop \"main\": rollout[1]: %w; restarted 5 times already (max_restarts)", f)
	want := "error[R011]: rollout[1] env 17: deadline in rl_step at step 3: stopped after its limit of 20ms (a.wasm); " +
		"restarted 5 times already (max_restarts)\n  help: correct the environment, or raise limits.step of its [env] table " +
		"if a step may take so long; see rlhost explain R011"
	if got := message(err); got != want {
		t.Errorf("message = %q, want %q", got, want)
	}
	f = &env.Fault{Kind: env.FaultDeadline, Name: "shaper", Source: "s.wasm", Call: "rl_slot", Env: -1, Step: 3, Component: true, Err: errors.New("stopped")}
	want = "error[R011]: shaper: deadline in rl_slot at step 3: stopped (s.wasm)\n  help: correct the component, or raise limits.step of its table " +
		"if a call may take so long; see rlhost explain R011"
	if got := message(f); got != want {
		t.Errorf("message of a component's fault = %q, want %q", got, want)
	}
	f = &env.Fault{Kind: env.FaultStatus, Name: "rollout", Source: "a.wasm", Call: "rl_step", Env: 0, Step: 1, Err: errors.New("no")}
	want = "error[R013]: rollout env 0: status in rl_step at step 1: no (a.wasm); no environment has made its first step\n" +
		"  help: correct the environment; rlhost check my.toml steps it alone; see rlhost explain R013"
	if got := message(&inPipeline{fmt.Errorf("rollout: %w; %w", f, env.ErrFirstStep), "my.toml"}); got != want {
		t.Errorf("message of a first step = %q, want %q", got, want)
	}
	if got := message(errors.New("disk full")); got != "disk full" {
		t.Errorf("message of another error = %q", got)
	}
}

func TestConsole_WritesOneLineForPeople(t *testing.T) {
	fault := &env.Fault{Kind: env.FaultTrap, Name: "rollout", Source: "a.wasm", Call: "rl_step", Env: 2, Step: 7,
		Err: errors.New("unreachable")}
	for want, log := range map[string]func(*slog.Logger){
		"rollout: hello from the guest\n": func(l *slog.Logger) { l.With("component", "rollout").Info("hello from the guest") },
		"warning[R010]: restarted: rollout env 2: trap in rl_step at step 7: unreachable (a.wasm)  restart=1\n": func(l *slog.Logger) {
			l.With("component", "rollout").Warn("restarted", "error", fault, "restart", 1)
		},
		"error: not saved: disk full  path=\"a b\"\n  help: make room\n": func(l *slog.Logger) {
			l.Error("not saved", "error", errors.New("disk full"), "path", "a b", "help", "make room")
		},
		"warning: grouped  a=1  g.b=2  g.c=\"\"\n": func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").With("b", 2).Warn("grouped", "c", "")
		},
		"?[2J? is only text\n": func(l *slog.Logger) { l.Info("\x1b[2J\u202e is only text") },
		"":                     func(l *slog.Logger) { l.Debug("nobody wants to know") },
	} {
		var out bytes.Buffer
		log(slog.New(&console{out: &out}))
		if out.String() != want {
			t.Errorf("got %q, want %q", out.String(), want)
		}
	}
}
