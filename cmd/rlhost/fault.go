package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/componentcheck"
	"github.com/rlhost/rlhost/plugins/envcheck"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// faultCodes are the codes of an environment's faults during a run; all other kinds have R014.
var faultCodes = map[env.FaultKind]string{
	env.FaultTrap: "R010", env.FaultDeadline: "R011", env.FaultMemory: "R012", env.FaultStatus: "R013",
}

// faultCode returns the code of an environment's fault, or nothing for other errors.
func faultCode(err error) string {
	var f *env.Fault
	if !errors.As(err, &f) {
		return ""
	}
	return cmp.Or(faultCodes[f.Kind], "R014")
}

// message is an error as the user sees it. A fault of an environment or a native plugin comes with its code and the
// remedy, without the names of the components that passed it on.
func message(err error) string {
	var raised *spawn.Error
	if errors.As(err, &raised) {
		return printable(fmt.Sprintf("error[%s]: %v\n  see rlhost explain %s", raised.Code, err, raised.Code))
	}
	var f *env.Fault
	if !errors.As(err, &f) {
		return ofRun(err)
	}
	text := err.Error()
	if i := strings.Index(text, f.Error()); i >= 0 {
		text = text[i:]
	}
	help, of, call := "correct the environment", "its [env] table", "a step"
	if f.Component {
		help, of, call = "correct the component", "its table", "a call"
	}
	switch {
	case f.Kind == env.FaultStatus && f.Call == hostabi.ExportCreate:
		help = "correct args of its [env] table, or what the environment accepts"
	case f.Kind == env.FaultDeadline:
		help += ", or raise limits.step of " + of + " if " + call + " may take so long"
	case f.Kind == env.FaultMemory:
		help += ", or raise limits.memory of " + of
	}
	var in *inPipeline
	if errors.As(err, &in) && errors.Is(err, env.ErrFirstStep) {
		help += "; rlhost check " + in.file + " steps it alone"
	}
	code := faultCode(err)
	return printable(fmt.Sprintf("error[%s]: %s\n  help: %s; see rlhost explain %s", code, text, help, code))
}

// inPipeline is an error of a run with the pipeline file that it was begun with.
type inPipeline struct {
	error
	file string
}

func (e *inPipeline) Unwrap() error { return e.error }

// ofRun is the message of a fault during a run, with its code and the remedy where it has them.
func ofRun(err error) string {
	var e *table.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Code, "R") {
		return printable(err.Error())
	}
	return printable(fmt.Sprintf("error[%s]: %v\n  help: %s; see rlhost explain %[1]s", e.Code, err, e.Help))
}

//go:embed explain.md
var runtimePages string

// explain returns the page of a code: of pipelines and plugins (E, W), of checks of components (C) and environments (A, D, S and so
// on), or of a run (R).
func explain(code string) (page string, ok bool) {
	for _, pages := range []func(code string) (string, bool){graph.Explain, envcheck.Explain, componentcheck.Explain} {
		if page, ok = pages(code); ok {
			return page, true
		}
	}
	return table.Page(runtimePages, code)
}

// codeTexts are the texts with the pages of codes, with the titles that the list of them has.
func codeTexts() []struct {
	title string
	codes []string
} {
	return []struct {
		title string
		codes []string
	}{
		{"Pipeline files and plugins: errors (E) and warnings (W)", graph.Codes()},
		{"Runs (R)", table.Codes(runtimePages)},
		{"Checks of environments", envcheck.Codes()},
		{"Checks of components", componentcheck.Codes()},
	}
}

type explainCommand struct {
	Code string `arg:"" optional:"" help:"Code, such as E040; all codes are listed without one."`
}

// Help names the kinds of codes.
func (c *explainCommand) Help() string {
	return `E are errors of a pipeline file or a plugin, W warnings about them, R faults during a run. The checks of rlhost check
have codes of other letters, such as D01.

  rlhost explain
  rlhost explain E040
  rlhost explain D03`
}

// Run prints the page of a code, or the list of codes.
func (c *explainCommand) Run(p *program) error {
	if c.Code == "" {
		return c.list(p)
	}
	page, ok := explain(c.Code)
	if !ok {
		return fail(exitUsage, fmt.Errorf("there is no code %q\n  help: rlhost explain lists the codes", c.Code))
	}
	fmt.Fprint(p.out, page)
	return nil
}

// list prints every code with its title and the first sentence of its page.
func (c *explainCommand) list(p *program) error {
	for i, text := range codeTexts() {
		if i > 0 {
			fmt.Fprintln(p.out)
		}
		fmt.Fprintf(p.out, "%s:\n", text.title)
		for _, code := range text.codes {
			page, ok := explain(code)
			if !ok {
				return fmt.Errorf("%s has no page", code)
			}
			title, sentence := table.Summary(page)
			fmt.Fprintf(p.out, "  %s. %s\n", title, sentence)
		}
	}
	return nil
}
