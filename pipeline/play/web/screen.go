package web

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rlhost/rlhost/pipeline/play"
)

// Stage is what a screen shows.
type Stage struct {
	Show  *play.Show
	What  string // is shown, for the line below the picture
	Close func() error
}

// Options say what a screen shows.
type Options struct {
	// Open opens a stage, which the screen closes; n counts from 0. It is not called again before that.
	Open func(ctx context.Context, n int) (*Stage, error)
	// Stale is asked when another episode begins, and now and then in a long one: true closes the stage and opens the next one. It may be nil.
	Stale func() bool
	// Ended is called once the episodes of a show are over, or with the error of a stage, which is not opened again then. Where it is nil, a
	// stage that failed is opened again after a while.
	Ended func(err error)
	Rate  float64 // pictures a second, at most
	// Share says how much of a processor may be spent now: a half for pictures, a half to open stages. nil: as much as it takes.
	Share func() float64
}

// Screen shows one stage to pages.
type Screen struct {
	o       Options
	presses chan press

	mu      sync.Mutex
	viewers map[*viewer]bool
	last    *frame // that is shown now
	stop    context.CancelFunc
	stopped chan struct{} // closed once the loop that began last has ended
	closed  bool
}

// viewer is a page that looks.
type viewer struct{ frames chan *frame } // holds the newest one

// press is a key of a page.
type press struct {
	key      string
	released bool
}

// maxPresses is how many keys wait for the game.
const maxPresses = 64

// New returns a screen, which nobody looks at yet.
func New(o Options) *Screen {
	return &Screen{o: o, presses: make(chan press, maxPresses), viewers: map[*viewer]bool{}}
}

// look adds a viewer. The first one starts the show.
func (s *Screen) look() *viewer {
	v := &viewer{frames: make(chan *frame, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return v
	}
	if s.viewers[v] = true; len(s.viewers) > 1 {
		if s.last != nil {
			v.frames <- s.last
		}
		return v
	}
	ctx, stop := context.WithCancel(context.Background())
	before, stopped := s.stopped, make(chan struct{})
	s.last, s.stop, s.stopped = nil, stop, stopped
	go func() {
		defer close(stopped)
		if before != nil {
			<-before
		}
		s.run(ctx)
	}()
	return v
}

// leave removes a viewer. The last one ends the show.
func (s *Screen) leave(v *viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.viewers[v] {
		return
	}
	if delete(s.viewers, v); len(s.viewers) == 0 {
		s.stop()
	}
}

// Close ends the show and waits until its stage is closed. Nothing is shown afterwards.
func (s *Screen) Close() {
	s.mu.Lock()
	s.closed = true
	clear(s.viewers)
	stop, stopped := s.stop, s.stopped
	s.mu.Unlock()
	if stopped != nil {
		stop()
		<-stopped
	}
}

// publish shows a frame to all viewers.
func (s *Screen) publish(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = f
	for v := range s.viewers {
		select {
		case <-v.frames: // an older one that was not taken
		default:
		}
		v.frames <- f
	}
}

// pressed gives a key to the game; false where too many wait.
func (s *Screen) pressed(p press) bool {
	select {
	case s.presses <- p:
		return true
	default:
		return false
	}
}

// long is how long an episode may show old weights.
const long = 30 * time.Second

// retry is when a stage that failed is opened again.
const retry = 3 * time.Second

// run shows stages until ctx ends.
func (s *Screen) run(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		err := s.show(ctx, n)
		if err != nil {
			s.publish(failed(err))
		}
		switch {
		case ctx.Err() != nil:
			return
		case s.o.Ended != nil:
			s.o.Ended(err)
			return
		case err != nil:
			pause(ctx, retry)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// show opens a stage and shows it until ctx ends, its episodes are over, or it is stale.
func (s *Screen) show(ctx context.Context, n int) (err error) {
	began := time.Now()
	stage, err := s.o.Open(ctx, n)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	show := stage.Show
	show.Tells, show.Changed = true, true
	show.Release(show.Held())
	fresh := time.Now().Add(s.rest(time.Since(began))) // another one is not opened before
	paint := painter{stage: stage}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for episode, asked := show.Game.Episode, began; ; {
		select {
		case <-ctx.Done():
			return nil
		case p := <-s.presses:
			if err := p.on(show); err != nil {
				return err
			}
			continue
		case <-timer.C:
		}
		began := time.Now()
		if err := show.CatchUp(began); err != nil {
			return err
		}
		if show.Changed {
			f, err := paint.frame()
			if err != nil {
				return err
			}
			s.publish(f)
		}
		if show.Over() {
			return nil
		}
		if s.o.Stale != nil && began.After(fresh) && (show.Game.Episode != episode || began.Sub(asked) > long) {
			if episode, asked = show.Game.Episode, began; s.o.Stale() {
				return nil
			}
		}
		worked := time.Since(began)
		timer.Reset(max(time.Duration(float64(time.Second)/s.o.Rate)-worked, s.rest(worked)))
	}
}

// rest is how long no work of the same kind may be done after some of that length.
func (s *Screen) rest(worked time.Duration) time.Duration {
	if s.o.Share == nil {
		return 0
	}
	return time.Duration(float64(worked) * (2/s.o.Share() - 1))
}

// on gives a key to a show.
func (p press) on(show *play.Show) error {
	show.Changed = true // at least its note
	if p.released {
		show.Release(p.key)
		return nil
	}
	return show.Press(p.key, false, time.Now())
}
