package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/plugins/builtin"
)

type swapCommand struct {
	Component string `arg:"" help:"Environment, such as env.cartpole, a component, such as inference, or a wrapper of an environment, such as env.cartpole.wrap[1]."`
	File      string `arg:"" help:"Module, name@version, PLUGIN:ENVIRONMENT or a program; builtin or process for the same kind elsewhere; for a wrapper a module or a table in braces."`

	At         string         `placeholder:"BOUNDARY" help:"When it gives way: step, trajectory, episode or now; default as [swap] of the pipeline says."`
	KeepState  *bool          `negatable:"" help:"Carry running episodes, or the component's state, over to the new version."`
	TrialEnvs  *int           `placeholder:"ENVS" help:"Try the new version next to the old one in so many environments first; 0 = do not."`
	TrialSteps *int           `placeholder:"STEPS" help:"Most env steps of each of them."`
	TrialLive  bool           `help:"Let the trial's trajectories reach the learner."`
	Probation  *time.Duration `placeholder:"TIME" help:"How long the new version is watched: at its first fault the old one runs again."`
	Force      bool           `help:"Take the old version away if it does not become idle within 10 s, and count what is lost."`
	DryRun     bool           `help:"Check and try it, and change nothing."`
	Write      bool           `help:"Write the new version into the pipeline file that the run was begun with, too, so that the next reload keeps it."`
	jobFlags
}

// Help shows how swap is called.
func (c *swapCommand) Help() string {
	return `The new version is loaded, checked and compiled next to the old one, tried, and takes over at a boundary; nothing that runs
waits for that. Exit code 4: the trial speaks against it; 5: it cannot be used here. In both cases nothing has changed.

  rlhost swap env.lander ./lander2.wasm --trial-envs 4
  rlhost swap inference process
  rlhost swap "env.lander.wrap[1]" "{ time_limit = 200 }"
  rlhost rollback env.lander`
}

// Run swaps and prints the outcome.
func (c *swapCommand) Run(p *program) error {
	if err := checkBoundary(c.At); err != nil {
		return err
	}
	file, err := absolute(c.File)
	if err != nil {
		return err
	}
	q := control.SwapRequest{
		Component: c.Component, File: file, At: c.At, KeepState: c.KeepState, TrialEnvs: c.TrialEnvs, TrialSteps: c.TrialSteps,
		TrialLive: c.TrialLive, DryRun: c.DryRun, Force: c.Force,
	}
	if c.Probation != nil {
		q.Probation = new(c.Probation.Seconds())
	}
	var reply control.SwapReply
	if err := c.ask(p, control.VerbSwap, q, &reply, p.progress); err != nil {
		return err
	}
	var unwritten error
	if c.Write && len(reply.Write) > 0 {
		if unwritten = c.write(&reply); unwritten == nil {
			reply.Write = nil
		}
	}
	if err := c.answer(p, &reply, text.Swap(&reply)); err != nil {
		return err
	}
	return unwritten
}

// write changes the pipeline file to the swapped-in version, with paths as in the file: relative to its folder.
func (c *swapCommand) write(r *control.SwapReply) error {
	file := c.run.Info().File
	if file == "" {
		return errors.New("the swap was made, but this run does not know the file that it was begun with: write it there")
	}
	sets := slices.Clone(r.Write)
	for i, set := range sets {
		key, value, _ := strings.Cut(set, " = ")
		path, err := strconv.Unquote(value)
		if err != nil || !filepath.IsAbs(path) {
			continue
		}
		if inside, err := files.Relative(filepath.Dir(file), path); err == nil && filepath.IsLocal(inside) {
			sets[i] = key + " = " + graph.Literal("./"+inside)
		}
	}
	src, err := readPipeline(file)
	if err == nil {
		src, err = graph.SetKeys(file, src, sets)
	}
	if err == nil {
		err = files.Replace(file, src)
	}
	if err != nil {
		return fmt.Errorf("the swap was made, but %s does not say so yet: %w", file, err)
	}
	r.Notes = append(r.Notes, "written into "+file+": "+strings.Join(sets, ", "))
	return nil
}

// absolute returns the path of a file as the job, which works in another folder, can open it. A name that is no file here stays as it is.
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

// checkBoundary returns an error for an invalid --at.
func checkBoundary(at string) error {
	if _, err := component.ParseBoundary(at); at != "" && err != nil {
		return fail(exitUsage, fmt.Errorf("--at: %w", err))
	}
	return nil
}

type rollbackCommand struct {
	Component string `arg:"" help:"Environment, such as env.cartpole, component or wrapper, as swap takes it."`
	At        string `placeholder:"BOUNDARY" help:"When it gives way: step, trajectory, episode or now."`
	KeepState *bool  `negatable:"" help:"Carry running episodes, or the component's state, over."`
	jobFlags
}

// Run goes back to the previous version; in a stopped run once it is resumed.
func (c *rollbackCommand) Run(p *program) error {
	if err := checkBoundary(c.At); err != nil {
		return err
	}
	if run, err := c.stopped(); run != nil || err != nil {
		return c.stoppedRun(p, run, err)
	}
	q := control.RollbackRequest{Component: c.Component, At: c.At, KeepState: c.KeepState}
	return tell(p, &c.jobFlags, control.VerbRollback, q, text.Swap)
}

// stopped returns the named run, if it is not running.
func (c *rollbackCommand) stopped() (*runs.Run, error) {
	if c.Job == "" {
		return nil, nil
	}
	run, err := c.Find(c.Job)
	if err != nil {
		return nil, err
	}
	pid, err := run.Holder()
	if err != nil || pid != 0 {
		return nil, err
	}
	return run, nil
}

// stoppedRun makes a component of a stopped run its previous version.
func (c *rollbackCommand) stoppedRun(p *program, run *runs.Run, err error) error {
	if err != nil {
		return err
	}
	if c.At != "" || c.KeepState != nil {
		return fail(exitUsage, fmt.Errorf("--at and --keep-state are for a run that is going on; %s %s", run.ID(), howEnded(run)))
	}
	err = p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
		r, err := session.Rollback(run, parts, p.logger(), c.Component)
		if err != nil {
			return p.printProblems(err)
		}
		return c.answer(p, r, fmt.Sprintf("%s goes back to %s once the run is resumed: rlhost train --resume %s\n", r.Component, text.Version(&r.New), run.ID()))
	})
	return p.also(err, run.Close())
}
