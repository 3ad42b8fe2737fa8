package session

import (
	"context"
	"sync"
	"time"

	"github.com/rlhost/rlhost/pipeline/runs"
)

// Starting says that a start takes long, first after two seconds, then each time that twice as long has passed.
type Starting struct{ runs.Starting }

func (Starting) event() {}

const (
	longStart = 2 * time.Second        // nothing is said of shorter ones
	sayStart  = 500 * time.Millisecond // between two notes in the run's folder
)

// starting notes in the run's folder how far a start is that takes long, until it is over.
type starting struct {
	session *Session
	over    context.CancelFunc
	noting  sync.WaitGroup

	mu  sync.Mutex
	now runs.Starting
}

func watchStart(s *Session) *starting {
	w := &starting{session: s}
	var life context.Context
	life, w.over = context.WithCancel(context.Background())
	w.noting.Go(func() { w.note(life) })
	return w
}

// made is pipeline.BuildOptions.Made.
func (w *starting) made(made, envs int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = runs.Starting{Envs: envs, Made: min(made, envs)}
}

func (w *starting) note(life context.Context) {
	begun, next := time.Now(), longStart
	tick := time.NewTimer(longStart)
	defer tick.Stop()
	for noted := (runs.Starting{}); ; tick.Reset(sayStart) {
		select {
		case <-life.Done():
			return
		case <-tick.C:
		}
		w.mu.Lock()
		now := w.now
		w.mu.Unlock()
		if now.Envs == 0 {
			continue
		}
		if since := time.Since(begun); since >= next {
			next = 2 * since
			w.session.tell(Starting{now})
		}
		if now != noted {
			noted = now
			_ = w.session.run.Update(func(i *runs.Info) { i.Starting = &now }) // what is wrong with the folder shows soon
		}
	}
}

// end says that the start is over. No note is made afterwards.
func (w *starting) end() error {
	w.over()
	w.noting.Wait()
	if w.session.run.Info().Starting == nil {
		return nil
	}
	return w.session.run.Update(func(i *runs.Info) { i.Starting = nil })
}
