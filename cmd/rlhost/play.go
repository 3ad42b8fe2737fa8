package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/pictures"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/pipeline/video"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// Codes of play and watch.
const (
	codeNoTerminal = "E155"
	codeNoPicture  = "E156"
	codeBadPicture = "E157"
	codeNoKey      = "E158"
)

// playFlags are shared by play and watch.
type playFlags struct {
	What     string            `arg:"" optional:"" default:"latest" predictor:"pipeline" name:"what" help:"Run, module file, built-in environment such as cartpole@1, or pipeline file, whose first environment is taken."`
	Seed     uint64            `default:"1" help:"Seed of the episodes."`
	FPS      float64           `name:"fps" placeholder:"N" help:"Env steps a second; default as many as the environment says, else 2, and a person is waited for."`
	Episodes int               `placeholder:"N" help:"End after so many; default none in a terminal, 1 without."`
	Agent    int               `default:"0" help:"Agent that a person plays, from 0 on."`
	Key      map[string]string `mapsep:"none" placeholder:"KEY=ACTION" help:"Key and the action that it stands for, such as left=0 or up=-1,0.5; none=0 is taken while no key is held. May be repeated."`
	Show     string            `enum:"auto,text,blocks,sixel,kitty" default:"auto" help:"Form of pictures: auto, text, blocks (half blocks), sixel or kitty."`
	Web      bool              `name:"web" help:"Show a page for a browser on this machine, with keys and buttons, instead of the terminal's."`
	Port     uint16            `placeholder:"PORT" help:"Port of 127.0.0.1 for --web; default a free one."`
	Record   string            `placeholder:"FILE" help:"Write the pictures into a film: .gif or .png, and .mp4, .mkv, .mov or .webm where ffmpeg is."`

	Policy     string   `placeholder:"NAME" help:"Policy of the run; default the leading one."`
	Checkpoint string   `default:"latest" help:"best (of that policy), latest or a policy version of the leading one."`
	Greedy     *bool    `negatable:"" help:"The policy takes greedy actions or, with --no-greedy, sampled ones; default as in the run."`
	Set        []string `placeholder:"KEY=VALUE" sep:"none" help:"Override a key of the run's pipeline. May be repeated."`
	runsFlag
	loadFlags
}

type playCommand struct{ playFlags }

type watchCommand struct{ playFlags }

// playedKeys are the keys that play and watch share.
const playedKeys = `
  tab          the person, the policy or chance plays    p      pause
  n            one step                                  b      one step back
  r            the next episode                          + -    faster, slower
  q, ctrl+c    end

The keys of actions are in the last line; one that is pressed gives the environment to the person. --key names others.
Without a terminal, --record FILE writes a film of what a policy or chance does.
`

// Help says how play is called, and which keys there are.
func (c *playCommand) Help() string {
	return `A person plays an environment in the terminal or on a page, and may let the policy of a run continue. Keys:
` + playedKeys + `
  rlhost play connectfour@1
  rlhost play lunarlander.wasm --key none=0 --key left=1 --key up=2 --key right=3
  rlhost play connectfour/3 --record game.gif
  rlhost play connectfour/3 --web`
}

// Help says how watch is called, and which keys there are.
func (c *watchCommand) Help() string {
	return `Shows how the policy of a run plays, or random actions in an environment, until a key gives it to a person. Keys:
` + playedKeys + `
  rlhost watch
  rlhost watch cartpole/3 --checkpoint best --record pole.gif --episodes 2
  rlhost watch minatar-breakout@1 --show text`
}

// Run lets a person play.
func (c *playCommand) Run(p *program) error { return c.run(p, play.Person) }

// Run shows what a policy does, or chance.
func (c *watchCommand) Run(p *program) error { return c.run(p, play.Policy) }

func (c *playFlags) run(p *program, by play.By) error {
	if err := c.check(p, by); err != nil {
		return err
	}
	return p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
		s, err := c.open(p, parts)
		if err != nil {
			return p.printProblems(pluginError(err))
		}
		return errors.Join(c.play(p, s, by), s.close())
	})
}

// check refuses what cannot work before anything is loaded.
func (c *playFlags) check(p *program, by play.By) error {
	switch {
	case c.Episodes < 0:
		return fail(exitUsage, fmt.Errorf("--episodes %d: want 0 (no end) or more", c.Episodes))
	case !(c.FPS >= 0 && c.FPS <= play.MaxRate):
		return fail(exitUsage, fmt.Errorf("--fps %g: want 0 (the default) to %d", c.FPS, play.MaxRate))
	}
	if c.Record != "" {
		if err := video.Check(c.Record, ""); err != nil {
			return fail(exitUsage, fmt.Errorf("error[%s]: %s: %w", codeUnencoded, c.Record, err))
		}
	}
	switch {
	case c.Web:
		return nil
	case c.Port != 0:
		return fail(exitUsage, errors.New("--port is for --web"))
	}
	if !onScreen(p) {
		if c.Record != "" && by != play.Person {
			return nil
		}
		return fail(exitUsage, fmt.Errorf("error[%s]: there is no terminal to show anything in\n  help: call it in a terminal; --web shows a page for a browser; rlhost watch --record FILE writes a film", codeNoTerminal))
	}
	if width, height, err := term.GetSize(int(os.Stdout.Fd())); err == nil && (width < leastColumns || height < leastRows) {
		return fail(exitUsage, fmt.Errorf("error[%s]: the terminal has %d columns and %d rows, want %d and %d\n  help: make it larger, or its letters smaller", codeNoTerminal, width, height, leastColumns, leastRows))
	}
	return nil
}

// onScreen reports whether the program reads and writes a terminal.
func onScreen(p *program) bool {
	return p.out == os.Stdout && term.IsTerminal(int(os.Stdout.Fd())) && term.IsTerminal(int(os.Stdin.Fd()))
}

// stage is an environment that is played, and who can play it.
type stage struct {
	plugin env.Plugin
	seats  []play.Seat
	what   string            // in the head of the screen
	keys   map[string]string // of the environment's table
	close  func() error
}

// open loads what the command line names.
func (c *playFlags) open(p *program, parts *graph.Parts) (*stage, error) {
	is, file := p.kindOf(c.What, &c.runsFlag)
	if is == aRun || c.What == "latest" {
		return c.openRun(p, parts)
	}
	s, err := &stage{}, error(nil)
	if is == aPipeline && strings.HasSuffix(file, ".toml") {
		s.plugin, s.keys, err = p.firstEnv(file, c.Set, parts)
	} else {
		s.plugin, err = c.load(c.What, parts)
	}
	if err != nil {
		return nil, err
	}
	s.what, s.close = s.plugin.Spec().Name, s.plugin.Close
	return s, nil
}

// firstEnv loads the first environment of a pipeline file, and returns the keys of its table.
func (p *program) firstEnv(file string, sets []string, parts *graph.Parts) (env.Plugin, map[string]string, error) {
	g, err := p.readGraph(file, sets, parts)
	if err != nil {
		return nil, nil, err
	}
	if len(g.Envs) == 0 {
		return nil, nil, fail(exitUsage, fmt.Errorf("%s has no [env] table", file))
	}
	first := &g.Envs[0]
	plugin, err := parts.Load(context.Background(), first.Name, first.Table, g.Dir)
	return plugin, first.Table.Keys, err
}

// openRun loads the environment of a run, and its policy.
func (c *playFlags) openRun(p *program, parts *graph.Parts) (*stage, error) {
	run, checkpoint, err := c.Load(c.What, c.Checkpoint, c.Policy)
	if err != nil {
		return nil, err
	}
	s, err := session.OpenStage(context.Background(), run, &checkpoint, session.RunEvaluation{
		Parts: parts, Sets: c.Set, Policy: c.Policy, Episodes: 1, Seed: c.Seed, Greedy: c.Greedy, Log: p.logger(),
	})
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%s, %s at policy version %d", run.ID(), s.Policy, s.PolicyVersion)
	return &stage{plugin: s.Plugin, seats: s.Players(), what: what, keys: s.Keys, close: s.Close}, nil
}

// play makes a game, and shows it or films it.
func (c *playFlags) play(p *program, s *stage, by play.By) (err error) {
	g, err := play.New(s.plugin, play.Options{Seed: c.Seed, Agent: c.Agent, Seats: s.seats})
	if err != nil {
		return fail(exitUsage, err)
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if g.By = by; by == play.Policy && s.seats == nil {
		g.By = play.Chance
	}
	keys, err := c.keys(s, g)
	if err != nil {
		return err
	}
	text, colour := g.Draws()
	if !text && !colour || !colour && c.Record != "" {
		return undrawn(g)
	}
	show := play.NewShow(g, keys, c.FPS)
	show.Episodes = c.Episodes
	film, err := c.film(show)
	if err != nil {
		return err
	}
	defer film.abort()
	show.Stepped = film.add
	switch {
	case c.Web:
		err = c.serve(p, s, show)
	case !onScreen(p):
		err = c.unseen(p, g, film)
	default:
		err = c.show(s, show, film)
	}
	if err != nil {
		return pictureError(err)
	}
	return film.close(p)
}

// keys are the keys of actions: the command line's, else the environment's table's, else its author's, else the default ones.
func (c *playFlags) keys(s *stage, g *play.Game) (play.Keys, error) {
	written, spec, group := c.Key, g.Spec(), g.Spec().GroupOf(c.Agent)
	if len(written) == 0 {
		written = s.keys
	}
	if len(written) == 0 {
		if own := env.OwnKeys(spec, group); own != nil {
			return play.Keys(own), nil
		}
		return play.DefaultKeys(g), nil
	}
	keys, err := env.ParseKeys(written, spec, group)
	if err == nil {
		return play.Keys(keys), nil
	}
	bad, code, place, exit := table.All(err)[0], env.CodeKeys, "`keys` of the environment", exitConfig
	if len(c.Key) > 0 {
		code, place, exit = codeNoKey, "--key", exitUsage
	}
	return nil, fail(exit, fmt.Errorf("error[%s]: %s: %s %s\n  help: %s; %s acts by %s", code, place, strings.TrimPrefix(bad.Key, "keys."), bad.Reason, bad.Help, spec.Name, g.ActionSpaces()))
}

// undrawn is the error of an environment without the pictures that are wanted.
func undrawn(g *play.Game) error {
	name := g.Spec().Name
	return fail(exitPlugin, fmt.Errorf("%s: error[%s]: it draws no pictures of that form\n  help: give it pictures: .draw of RL_ENV in C, with rl_draw.h, or rl_render in any language, or of Gymnasium --arg render_mode=rgb_array; rlhost explain %[2]s says how", name, codeNoPicture))
}

// pictureError names the check that says more about a picture that could not be drawn.
func pictureError(err error) error {
	var fault *env.Fault
	if !errors.As(err, &fault) || fault.Call != hostabi.ExportRender {
		return err
	}
	// Not wrapped: the fault would be told with the code of a run's.
	return fail(exitPlugin, fmt.Errorf("error[%s]: %s\n  help: correct how it draws; rlhost check %s says in R01 whether pictures change nothing", codeBadPicture, err, fault.Source))
}

// show shows a game in the terminal.
func (c *playFlags) show(s *stage, show *play.Show, film *film) error {
	m := &playScreen{what: s.what, Show: show, film: film}
	if m.form = shownForm(c.Show, show.Game, os.Getenv); m.form == "" {
		return undrawn(show.Game)
	}
	_, err := tea.NewProgram(m, tea.WithFPS(2*fastest)).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		err = nil
	}
	return errors.Join(m.err, err)
}

// shownForm is the form of pictures that was asked for, or the best that the terminal is known to show; empty if the environment draws none.
func shownForm(asked string, g *play.Game, getenv func(string) string) pictures.Form {
	text, colour := g.Draws()
	switch {
	case asked == string(textForm) && !text, asked != "auto" && asked != string(textForm) && !colour:
		return ""
	case asked != "auto":
		return pictures.Form(asked)
	case !colour:
		return textForm
	}
	terminal, program := getenv("TERM"), getenv("TERM_PROGRAM")
	switch {
	case getenv("KITTY_WINDOW_ID") != "", strings.Contains(terminal, "kitty"), program == "ghostty", program == "WezTerm":
		return pictures.Kitty
	case strings.HasPrefix(terminal, "foot"), strings.HasPrefix(terminal, "mlterm"):
		return pictures.Sixel
	case text && getenv("COLORTERM") == "":
		return textForm
	}
	return pictures.Blocks
}

// unseen plays without a terminal, for the film alone.
func (c *playFlags) unseen(p *program, g *play.Game, film *film) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	episodes := max(c.Episodes, 1)
	if err := film.add(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := g.Step(); err != nil {
			return err
		}
		if err := film.add(); err != nil {
			return err
		}
		if !g.Over {
			continue
		}
		fmt.Fprintf(p.out, "episode %d: return %g, %d env steps, %s\n", g.Episode, g.Return, g.Steps(), g.Ended)
		if g.Episode+1 == episodes {
			return nil
		}
	}
	return nil
}

// film records a game. A nil one records nothing.
type film struct {
	game    *play.Game
	file    *video.Film
	path    string
	picture []byte
}

// film begins the film that was asked for.
func (c *playFlags) film(s *play.Show) (*film, error) {
	if c.Record == "" {
		return nil, nil
	}
	r := s.Game.Spec().Render
	file, err := video.Create(c.Record, video.Options{Width: r.Width, Height: r.Height, FPS: min(s.Rate, maxFilmed)})
	if err != nil {
		return nil, fail(exitUsage, fmt.Errorf("error[%s]: %s: %w", codeUnencoded, c.Record, err))
	}
	return &film{game: s.Game, file: file, path: c.Record}, nil
}

// maxFilmed is how many pictures a second a film has at most.
const maxFilmed = 50

// add adds a picture of the game as it is now.
func (f *film) add() (err error) {
	if f == nil {
		return nil
	}
	if f.picture, err = f.game.Colour(f.picture); err != nil {
		return err
	}
	return f.file.Add(f.picture)
}

// close completes the film, and says where it is.
func (f *film) close(p *program) error {
	if f == nil || f.file.Count() == 0 {
		return nil
	}
	if err := f.file.Close(); err != nil {
		return fail(exitFailed, fmt.Errorf("error[%s]: %s: %w", codeUnencoded, f.path, err))
	}
	_, err := fmt.Fprintf(p.out, "%s has %d pictures\n", f.path, f.file.Count())
	return err
}

func (f *film) abort() {
	if f != nil {
		f.file.Abort()
	}
}
