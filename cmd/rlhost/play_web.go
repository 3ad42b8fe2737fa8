package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/pipeline/loopback"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/pipeline/play/web"
)

// serve shows a game on a page until it is over or the program is interrupted.
func (c *playFlags) serve(p *program, s *stage, show *play.Show) error {
	if err := show.Stepped(); err != nil { // the film begins with the game
		return err
	}
	l, err := listen(c.Port)
	if err != nil {
		return err
	}
	ctx, stop := untilAsked()
	defer stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	var ended error
	screen := web.New(web.Options{
		Open: func(context.Context, int) (*web.Stage, error) {
			return &web.Stage{Show: show, What: s.what, Close: func() error { return nil }}, nil
		},
		Ended: func(err error) { ended = err; end() },
		Rate:  fastest,
	})
	page, err := web.Page(screen, s.what, show.Keys)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	server := loopback.New("rlhost", page, p.logger())
	fmt.Fprintln(p.out, server.URL(l))
	err = server.Serve(ctx, l)
	screen.Close()
	return errors.Join(ended, err)
}
