package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/tape"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/pipeline/replay"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/pipeline/video"
	"github.com/rlhost/rlhost/plugins/builtin"
)

type replayCommand struct {
	RunID   string  `arg:"" optional:"" default:"latest" name:"run" help:"Run: a folder, a name, cartpole/7, or latest."`
	Episode int     `default:"-1" placeholder:"N" help:"Number of the episode, as rlhost runs episodes lists it; with --env the number in that environment."`
	Env     int     `default:"-1" placeholder:"N" help:"Environment of the episode; default as the list has it."`
	Agent   int     `default:"0" placeholder:"N" help:"Agent of the episode, with --env."`
	Trial   uint64  `placeholder:"N" help:"Number of a change: plays the episode with which its new environments failed, instead of --episode."`
	Trace   bool    `help:"Print each step instead of showing pictures."`
	JSON    bool    `name:"json" help:"Print each step as one JSON object per line."`
	FPS     float64 `name:"fps" placeholder:"N" help:"Env steps a second; default as many as the environment says, else 2."`
	Show    string  `enum:"auto,text,blocks,sixel,kitty" default:"auto" help:"Form of pictures: auto, text, blocks (half blocks), sixel or kitty."`
	Record  string  `placeholder:"FILE" help:"Write the pictures into a film: .gif or .png, and .mp4, .mkv, .mov or .webm where ffmpeg is."`
	runsFlag
}

// Help says how replay is called, and which keys there are.
func (c *replayCommand) Help() string {
	return `Plays an episode of a run again, bit for bit: the environment gets the actions that it got. Asynchronous runs need run.record, which
keeps the newest episodes. A synchronous run that has recorded nothing is run again from the nearest checkpoint before. Keys:

  p      pause                  n      one step           b      one step back
  r      from the beginning     + -    faster, slower     q      end

Without a terminal, or pictures, each step is printed, as with --trace.

  rlhost runs episodes cartpole/3 --worst 5
  rlhost replay cartpole/3 --episode 17
  rlhost replay cartpole/3 --episode 4 --env 2 --trace
  rlhost replay cartpole/3 --episode 17 --record fall.gif
  rlhost replay cartpole/3 --trial 4 --trace`
}

// Run plays the episode.
func (c *replayCommand) Run(p *program) error {
	if c.Record != "" {
		if err := video.Check(c.Record, ""); err != nil {
			return fail(exitUsage, fmt.Errorf("error[%s]: %s: %w", codeUnencoded, c.Record, err))
		}
	}
	switch {
	case c.Trial > 0 && (c.Episode >= 0 || c.Env >= 0 || c.Agent > 0):
		return fail(exitUsage, errors.New("--trial N names an episode by itself: leave --episode, --env and --agent out"))
	case c.Trial == 0 && c.Episode < 0:
		return fail(exitUsage, fmt.Errorf("which episode? --episode N; rlhost runs episodes %s lists them", c.RunID))
	}
	if !(c.FPS >= 0 && c.FPS <= play.MaxRate) {
		return fail(exitUsage, fmt.Errorf("--fps %g: want 0 (the default) to %d", c.FPS, play.MaxRate))
	}
	run, err := c.Find(c.RunID)
	if err != nil {
		return err
	}
	var line replay.Line
	if c.Trial == 0 {
		if line, err = replay.Read(run, replay.Which{Episode: c.Episode, Env: c.Env, Agent: c.Agent}); err != nil {
			return replayError(err)
		}
	}
	return p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		if c.Trial > 0 {
			return replayError(c.failed(ctx, p, run, parts))
		}
		return replayError(c.play(ctx, p, run, line, parts))
	})
}

// failed plays the episode with which a new version has failed.
func (c *replayCommand) failed(ctx context.Context, p *program, run *runs.Run, parts *graph.Parts) error {
	reel, failed, err := replay.Trial(run, c.Trial)
	if err != nil {
		return err
	}
	x, err := replay.OpenFailed(reel, failed, replay.Loader(ctx, run, parts))
	if err == nil {
		what := fmt.Sprintf("%s, environment %d, change %d", run.ID(), x.Told.Env, c.Trial)
		err = errors.Join(c.shown(p, what, x), x.Close())
	}
	return errors.Join(err, reel.Close())
}

// replayError is the command's error with its code.
func replayError(err error) error {
	var e *table.Error
	switch {
	case errors.As(err, &e) && e.Code != "":
		place := e.Place
		if place != "" {
			place += ": "
		}
		return fail(exitUsage, fmt.Errorf("error[%s]: %s%s\n  help: %s", e.Code, place, e.Reason, e.Help))
	case errors.Is(err, replay.ErrGone):
		return fail(exitUsage, fmt.Errorf("error[%s]: %w\n  help: a larger run.record keeps more", replay.CodeGone, err))
	case errors.Is(err, replay.ErrDiffers):
		return fail(exitPlugin, fmt.Errorf("error[%s]: %w\n  help: rlhost check says with D01 to D10 what an environment depends on besides seeds and actions; a step back at 0 shows what it did", replay.CodeDiffers, err))
	}
	return err
}

// play finds the episode in the run's recording, or runs the run again.
func (c *replayCommand) play(ctx context.Context, p *program, run *runs.Run, line replay.Line, parts *graph.Parts) error {
	x, end, err := c.recorded(ctx, run, line, parts, line.Key)
	if errors.Is(err, replay.ErrGone) && run.Info().Mode == graph.ModeSync {
		x, end, err = c.again(ctx, p, run, line, parts)
	}
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s, environment %d, %s at policy version %d", run.ID(), line.Key.Env, line.Policy, line.PolicyVersion)
	return errors.Join(c.shown(p, what, x), end())
}

// recorded opens an episode of a recording. end closes everything.
func (c *replayCommand) recorded(ctx context.Context, run *runs.Run, line replay.Line, parts *graph.Parts, key replay.Key) (x *replay.Episode, end func() error, err error) {
	reel, err := tape.Open(filepath.Join(run.Dir, runs.RecordingFolder))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, replay.Gone(run, line, "the run has recorded nothing", replay.ErrGone)
	}
	if err != nil {
		return nil, nil, err
	}
	told, err := replay.Find(reel, key)
	if err != nil {
		err = replay.Gone(run, line, "the run's recording does not have it", err)
	}
	if err == nil && (told.Length != line.Length || told.Return != line.Return) {
		err = fmt.Errorf("%w: an episode of %d env steps with a return of %v came instead of one of %d with %v", replay.ErrDiffers, told.Length, told.Return, line.Length, line.Return)
	}
	if err == nil {
		x, err = replay.Open(reel, told, replay.Loader(ctx, run, parts))
	}
	if err != nil {
		return nil, nil, errors.Join(err, reel.Close())
	}
	return x, func() error { return errors.Join(x.Close(), reel.Close()) }, nil
}

// again runs a synchronous run again, and opens the episode there.
func (c *replayCommand) again(ctx context.Context, p *program, run *runs.Run, line replay.Line, parts *graph.Parts) (x *replay.Episode, end func() error, err error) {
	dir, err := os.MkdirTemp("", "rlhost-replay-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	repeated, key, err := session.RunAgain(ctx, run, session.Again{Parts: parts, Log: p.logger(), Line: line, Dir: dir, Begins: func(envSteps uint64) {
		fmt.Fprintf(os.Stderr, "%s is run again from %d env steps to %d\n", run.ID(), envSteps, line.EnvStep)
	}})
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	x, leave, err := c.recorded(ctx, repeated, line, parts, key)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return x, func() error { return errors.Join(leave(), remove()) }, nil
}

// shown shows an episode, films it, or prints its steps.
func (c *replayCommand) shown(p *program, what string, x *replay.Episode) error {
	if c.Trace || c.JSON {
		return c.trace(p, x)
	}
	game := play.Again(x)
	text, colour := game.Draws()
	switch {
	case c.Record != "" && !colour:
		return undrawn(game)
	case c.Record == "" && (!onScreen(p) || !text && !colour):
		return c.trace(p, x)
	}
	show := play.NewShow(game, nil, c.FPS)
	like := &playFlags{Show: c.Show, FPS: c.FPS, Record: c.Record, Episodes: 1}
	film, err := like.film(show)
	if err != nil {
		return err
	}
	defer film.abort()
	show.Stepped = film.add
	if onScreen(p) {
		err = like.show(&stage{what: what}, show, film)
	} else {
		err = like.unseen(p, game, film)
	}
	if err != nil {
		return pictureError(err)
	}
	return film.close(p)
}

// traced is a step as JSON.
type traced struct {
	Step        int         `json:"step"`
	Observation [][]float64 `json:"observation"`
	Acts        bool        `json:"acts"`
	Action      [][]float64 `json:"action,omitempty"`
	Reward      float32     `json:"reward"`
	Terminated  bool        `json:"terminated,omitempty"`
	Truncated   bool        `json:"truncated,omitempty"`
	Failed      bool        `json:"failed,omitempty"`
}

// trace prints all steps.
func (c *replayCommand) trace(p *program, x *replay.Episode) error {
	for !x.Over {
		err := x.Step()
		if err != nil && !errors.Is(err, replay.ErrDiffers) {
			return err
		}
		if said := c.line(p, x.Newest()); said != nil || err != nil {
			return errors.Join(said, err)
		}
	}
	total, _, ended := x.Score()
	switch {
	case x.Fault != nil && c.JSON:
		return p.encode(map[string]any{"return": float32(total), "ended": ended, "error": x.Fault.Error()})
	case x.Fault != nil:
		_, err := fmt.Fprintf(p.out, "%s after %d env steps, return %s, as in the run: %v\n", ended, x.Steps(), digits(float64(float32(total))), x.Fault)
		return err
	case c.JSON:
		return p.encode(map[string]any{"return": float32(total), "ended": ended, "observation": x.Observation()})
	}
	_, err := fmt.Fprintf(p.out, "%s after %d env steps, return %s, last observation %s: as in the run\n", ended, x.Steps(), digits(float64(float32(total))), tensors(x.Observation()))
	return err
}

// line prints a step.
func (c *replayCommand) line(p *program, s replay.Step) error {
	if c.JSON {
		t := traced{s.Number, s.Observation, s.Acts, s.Action, s.Reward, s.Terminated, s.Truncated, s.Failed}
		if !s.Acts {
			t.Action = nil
		}
		return p.encode(t)
	}
	action := tensors(s.Action)
	if !s.Acts {
		action = "none"
	}
	reward := "reward " + digits(float64(s.Reward))
	if s.Failed {
		reward = "fails"
	}
	_, err := fmt.Fprintf(p.out, "step %d  observation %s  action %s  %s\n", s.Number, tensors(s.Observation), action, reward)
	return err
}

// tensors are the elements of tensors.
func tensors(list [][]float64) string {
	texts := make([]string, len(list))
	for i, of := range list {
		var elements []string
		for _, v := range of {
			elements = append(elements, digits(v))
		}
		texts[i] = "[" + strings.Join(elements, " ") + "]"
	}
	return strings.Join(texts, " ")
}

// digits is a number with as many digits as tell it from every other one.
func digits(v float64) string {
	if float64(float32(v)) == v {
		return strconv.FormatFloat(v, 'g', -1, 32)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
