package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/pipeline/video"
)

// Bounds on a video of a run. An episode that is longer is cut off.
const (
	longestVideo = 3000 // pictures
	fastestVideo = 50   // pictures a second, more than which GIFs do not show
	usualVideo   = 10   // of an environment that says nothing
)

// film makes a video of the leading policy. A run without it continues, and says why.
func (e *evaluator) film(g *graph.Graph, c *runs.Checkpoint) {
	err := e.record(g, c, leadingFirst(e.s, g)[0])
	if err != nil && e.ctx.Err() == nil {
		e.s.log.Warn("a video failed, training goes on", "env_steps", c.EnvSteps, "error", err)
	}
}

// record plays an episode in the way that is judged, and writes its pictures.
func (e *evaluator) record(g *graph.Graph, c *runs.Checkpoint, of learning) (err error) {
	plugin, err := e.load(g, of.policy.Env)
	if err != nil {
		return err
	}
	p, err := planOf(e.s, g, c.Components, of, plugin)
	if err != nil {
		return err
	}
	stage := &Stage{Plugin: plugin}
	defer func() { err = errors.Join(err, stage.leave()) }()
	if err := stage.seatAll(p.player, p.reader.Spec, p.options.Seed, p.options.JudgesGreedy); err != nil {
		return err
	}
	game, err := play.New(plugin, play.Options{Seed: p.options.Seed, Seats: stage.Players()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, game.Close()) }()
	if _, colour := game.Draws(); !colour {
		return fmt.Errorf("%s: %w in colour", p.reader.Spec.Name, play.ErrNoPicture)
	}
	game.By = play.Policy
	folder := filepath.Join(e.s.run.Dir, runs.VideoFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	return filmEpisode(e.ctx, game, filepath.Join(folder, fmt.Sprintf("%012d.gif", c.EnvSteps)))
}

// filmEpisode writes the episode of a game, which has just begun, into a file.
func filmEpisode(ctx context.Context, game *play.Game, path string) error {
	r := game.Spec().Render
	film, err := video.Create(path, video.Options{Width: r.Width, Height: r.Height, FPS: min(cmp.Or(float64(r.FPS), usualVideo), fastestVideo)})
	if err != nil {
		return err
	}
	defer film.Abort()
	var picture []byte
	for {
		if picture, err = game.Colour(picture); err != nil {
			return err
		}
		if err := film.Add(picture); err != nil {
			return err
		}
		if game.Over || film.Count() == longestVideo {
			return film.Close()
		}
		if err := errors.Join(ctx.Err(), game.Step()); err != nil {
			return err
		}
	}
}
