package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
)

type swapCommand struct {
	Component string `arg:"" help:"Component, such as rollout, or a wrapper of its environments, such as rollout.wrap[1]."`
	File      string `arg:"" help:"Module, name@version, PLUGIN:ENVIRONMENT or a program; builtin or process for the same kind elsewhere; for a wrapper a module or a table in braces."`

	At          string         `placeholder:"BOUNDARY" help:"When it gives way: step, trajectory, episode or now; default as [swap] of the pipeline says."`
	KeepState   *bool          `negatable:"" help:"Carry running episodes, or the component's state, over to the new version."`
	Canary      *int           `placeholder:"ENVS" help:"Try the new version beside the old one in so many environments first; 0 = do not."`
	Verify      *int           `placeholder:"STEPS" help:"Most env steps of each of them."`
	CanaryTrain bool           `help:"Let the trial's trajectories reach the learner."`
	Probation   *time.Duration `placeholder:"TIME" help:"How long the new version is watched: at its first fault the old one runs again."`
	DryRun      bool           `help:"Check and try it, and change nothing."`
	jobFlags
}

// Help shows how swap is called.
func (c *swapCommand) Help() string {
	return `The new version is loaded, checked and compiled beside the old one, tried, and takes over at a boundary; nothing that runs
waits for that. Exit code 4: the trial speaks against it; 5: it cannot be used here. In both cases nothing has changed.

  rlhost swap rollout ./lander2.wasm --canary 4
  rlhost swap inference process
  rlhost swap "rollout.wrap[1]" "{ time_limit = 200 }"
  rlhost rollback rollout`
}

// Run swaps and says what happened.
func (c *swapCommand) Run(p *program) error {
	if err := checkBoundary(c.At); err != nil {
		return err
	}
	file, err := absolute(c.File)
	if err != nil {
		return err
	}
	q := control.SwapRequest{
		Component: c.Component, File: file, At: c.At, KeepState: c.KeepState, Canary: c.Canary, Verify: c.Verify,
		CanaryTrain: c.CanaryTrain, DryRun: c.DryRun,
	}
	if c.Probation != nil {
		q.Probation = new(c.Probation.Seconds())
	}
	return tell(p, &c.jobFlags, control.VerbSwap, q, text.Swap)
}

// absolute returns the path of a file as the job, which works in another folder, can open it. What is no file here
// stays as it is.
func absolute(file string) (string, error) {
	if file == "builtin" || file == "process" || strings.HasPrefix(file, "{") { // words, and tables, whatever lies here
		return file, nil
	}
	_, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsRune(file, filepath.Separator) && !strings.HasSuffix(file, ".wasm") {
		return file, nil // name@version, PLUGIN:ENVIRONMENT, a declared plugin
	}
	return filepath.Abs(file)
}

// checkBoundary says what is wrong with --at.
func checkBoundary(at string) error {
	if _, err := component.ParseBoundary(at); at != "" && err != nil {
		return fail(exitUsage, fmt.Errorf("--at: %w", err))
	}
	return nil
}

type rollbackCommand struct {
	Component string `arg:"" help:"Component, such as rollout."`
	At        string `placeholder:"BOUNDARY" help:"When it gives way: step, trajectory, episode or now."`
	KeepState *bool  `negatable:"" help:"Carry running episodes, or the component's state, over."`
	jobFlags
}

// Run goes back to the previous version.
func (c *rollbackCommand) Run(p *program) error {
	if err := checkBoundary(c.At); err != nil {
		return err
	}
	q := control.RollbackRequest{Component: c.Component, At: c.At, KeepState: c.KeepState}
	return tell(p, &c.jobFlags, control.VerbRollback, q, text.Swap)
}
