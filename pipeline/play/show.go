package play

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// MaxRate bounds how many env steps of a show are made a second.
const MaxRate = 10_000

// usualRate is the rate of an environment that names none.
const usualRate = 2

// Times of a show.
const (
	repeats  = 300 * time.Millisecond // that a key counts as held where nothing tells of its release: longer than terminals take to repeat it
	lag      = 250 * time.Millisecond // that the game may be behind before the steps that are due are forgotten
	endShown = time.Second            // that the end of an episode is shown
)

// Show is a game that keys and time drive. It belongs to one goroutine.
type Show struct {
	Game *Game
	Keys Keys

	Rate     float64      // env steps a second
	Live     bool         // steps are made whether the person has chosen or not
	Episodes int          // to play; 0: no end
	Tells    bool         // Release is called
	Stepped  func() error // called after each change of the game but going back; nil: nothing is

	Paused  bool
	Changed bool   // the game is not as it was when the caller set this to false
	Note    string // why the last key did nothing

	who   []By
	due   time.Time // of the next step
	held  string    // key
	until time.Time // the key counts as held; zero: until its release
}

// NewShow returns a show of a game. fps is the env steps a second that were asked for; 0 lets the environment say.
func NewShow(g *Game, keys Keys, fps float64) *Show {
	s := &Show{Game: g, Keys: keys, Changed: true, who: []By{Person, Chance}}
	switch {
	case g.again != nil:
		s.who = []By{Record}
	case g.HasPolicy():
		s.who = []By{Person, Policy, Chance}
	}
	said := float64(g.Spec().Render.FPS)
	s.Rate, s.Live = min(cmp.Or(fps, said, usualRate), MaxRate), fps > 0 || said > 0
	return s
}

// Who lists who can play, in the order in which the key tab gives the game from one to the next.
func (s *Show) Who() []By { return s.who }

// Over reports whether all episodes have been played.
func (s *Show) Over() bool { return s.Episodes > 0 && s.Game.Over && s.Game.Episode+1 >= s.Episodes }

// Press does what a key means. A key of an action gives the environment to the person; again says that the key was held.
func (s *Show) Press(key string, again bool, now time.Time) error {
	if action, ok := s.Keys[key]; ok && key != None {
		return s.choose(key, action, again, now)
	}
	s.Note = ""
	switch key {
	case "tab":
		s.Game.By = s.who[(slices.Index(s.who, s.Game.By)+1)%len(s.who)]
		s.held = ""
	case "p":
		s.Paused = !s.Paused
	case "n":
		s.Paused = true
		return s.step()
	case "b":
		s.Paused, s.Changed = true, true
		return s.Game.Back(1)
	case "r":
		if err := s.Game.Next(); err != nil {
			return err
		}
		return s.changed()
	case "+", "=":
		s.Rate = min(s.Rate*2, MaxRate)
	case "-":
		s.Rate = max(s.Rate/2, 1.0/8)
	}
	return nil
}

// Release says that a key is no longer held.
func (s *Show) Release(key string) {
	if s.held == key {
		s.held = ""
	}
}

// Held is the key of an action that is held, or "".
func (s *Show) Held() string { return s.held }

// choose takes an action of the person. A game that waits for the person makes its step at once.
func (s *Show) choose(key string, action []float64, again bool, now time.Time) error {
	s.Game.By, s.Note = Person, ""
	if err := s.Game.Choose(action); err != nil {
		return err
	}
	s.held, s.until = key, time.Time{}
	if !s.Tells {
		s.until = now.Add(repeats)
	}
	if s.Live && !s.Paused || again {
		return nil
	}
	return s.step()
}

// step makes a step, unless the person's action is not legal: then a note says so.
func (s *Show) step() error {
	switch err := s.Game.Step(); {
	case errors.Is(err, ErrChoice):
		s.Note = err.Error()
		return nil
	case err != nil:
		return err
	}
	return s.changed()
}

func (s *Show) changed() error {
	s.Changed = true
	if s.Stepped == nil {
		return nil
	}
	return s.Stepped()
}

// CatchUp makes the steps that are due.
func (s *Show) CatchUp(now time.Time) error {
	s.rest(now)
	if s.Paused || now.Sub(s.due) > lag {
		s.due = now
	}
	for ; !s.Paused && !s.waits() && !s.Over() && !s.due.After(now); s.due = s.due.Add(time.Duration(float64(time.Second) / s.Rate)) {
		if err := s.step(); err != nil {
			return err
		}
		if s.Game.Over {
			s.due = now.Add(endShown)
			break
		}
	}
	return nil
}

// waits reports whether nothing happens before the person has pressed a key.
func (s *Show) waits() bool {
	return !s.Live && s.Game.By == Person && !s.Game.Over && s.Game.Waits()
}

// rest takes the action without a key where none is held any more.
func (s *Show) rest(now time.Time) {
	if s.held != "" && !s.until.IsZero() && now.After(s.until) {
		s.held = ""
	}
	if rest, ok := s.Keys[None]; ok && s.Live && s.held == "" && s.Game.By == Person {
		_ = s.Game.Choose(rest) // it was checked with the other keys
	}
}
