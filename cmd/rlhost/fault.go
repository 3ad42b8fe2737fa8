package main

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// faultCode returns the code of what an environment did wrong while it ran, or nothing for other errors.
func faultCode(err error) string {
	var f *env.Fault
	if !errors.As(err, &f) {
		return ""
	}
	switch f.Kind {
	case env.FaultTrap:
		return "R010"
	case env.FaultDeadline:
		return "R011"
	case env.FaultMemory:
		return "R012"
	case env.FaultStatus:
		return "R013"
	default:
		return "R014"
	}
}

// explainFault returns the text of an error that an environment or a native plugin caused, without the names of those that handed it
// on, with its code and what to do. ok is false for other errors.
func explainFault(err error) (text string, ok bool) {
	var raised *spawn.Error
	if errors.As(err, &raised) {
		return fmt.Sprintf("error[%s]: %s\n  see rlhost explain %s", raised.Code, err.Error(), raised.Code), true
	}
	var f *env.Fault
	if !errors.As(err, &f) {
		return "", false
	}
	text = err.Error()
	if i := strings.Index(text, f.Error()); i >= 0 {
		text = text[i:]
	}
	help := "correct the environment"
	switch {
	case f.Kind == env.FaultStatus && f.Call == hostabi.ExportCreate:
		help = "correct args of its [env] table, or what the environment accepts"
	case f.Kind == env.FaultDeadline:
		help += ", or raise limits.step of its [env] table if a step may take so long"
	case f.Kind == env.FaultMemory:
		help += ", or raise limits.memory of its [env] table"
	}
	code := faultCode(err)
	return fmt.Sprintf("error[%s]: %s\n  help: %s; see rlhost explain %s", code, text, help, code), true
}

//go:embed explain.md
var runtimePages string

// explain returns the page of a code: of pipelines and plugins (E, W), of checks of environments (A, D, S and so
// on), or of a run (R).
func explain(code string) (page string, ok bool) {
	if page, ok := graph.Explain(code); ok {
		return page, true
	}
	if page, ok := envcheck.Explain(code); ok {
		return page, true
	}
	_, rest, ok := strings.Cut(runtimePages, "\n## "+strings.ToUpper(strings.TrimSpace(code))+" ")
	if !ok {
		return "", false
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return strings.ToUpper(strings.TrimSpace(code)) + " " + strings.TrimSpace(body) + "\n", true
}

type explainCommand struct {
	Code string `arg:"" help:"Code, such as E040."`
}

// Help names the kinds of codes.
func (c *explainCommand) Help() string {
	return `E are errors of a pipeline file or a plugin, W warnings about them, R what goes wrong while a run goes on. The
checks of rlhost check have codes of other letters, such as D01.

  rlhost explain E040
  rlhost explain D03`
}

// Run prints the page of a code.
func (c *explainCommand) Run(p *program) error {
	page, ok := explain(c.Code)
	if !ok {
		return fail(exitUsage, fmt.Errorf("there is no code %q; codes look like E040, W101, R010 or D01", c.Code))
	}
	fmt.Fprint(p.out, page)
	return nil
}
