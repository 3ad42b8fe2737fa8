package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// folderEvery is how often a session looks whether its run's folder is still there.
const folderEvery = time.Second

// Folder returns the run. It is another one than at the beginning if its folder was removed meanwhile.
func (s *Session) Folder() *runs.Run {
	if beside := s.beside.Load(); beside != nil {
		return beside
	}
	return s.run
}

// watchFolder ends the run once its folder has been removed, and saves its state next to it. end ends the watch.
func (s *Session) watchFolder() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(folderEvery)
		defer tick.Stop()
		for told := false; ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !s.run.Gone() {
				continue
			}
			err := s.moveBeside()
			if err == nil {
				s.pipeline.Stop(component.StopInterrupted)
				return
			}
			if !told {
				s.log.Error("the run's folder was removed, and another cannot be made: nothing is kept until it can", "folder", s.run.Dir, "error", err)
				told = true
			}
		}
	})
	return func() {
		cancel()
		watch.Wait()
	}
}

// removed returns an error for a run whose folder was removed; nil for any other. Call it after the end of the run.
func (s *Session) removed() error {
	if s.beside.Load() == nil {
		if !s.run.Gone() {
			return nil
		}
		if err := s.moveBeside(); err != nil {
			return fmt.Errorf("the run's folder %s was removed while it went on, and another cannot be made: %w", s.run.Dir, err)
		}
		if s.last != nil {
			s.saveErr = s.Folder().Save(s.at)
		}
	}
	return fmt.Errorf("the run's folder %s was removed while it went on: what it ended with is in %s\n  help: rlhost train --resume %s goes on from there; rlhost stop ends a run",
		s.run.Dir, s.Folder().Dir, s.Folder().ID())
}

// moveBeside makes a folder for all later files next to the run's own, which was removed.
func (s *Session) moveBeside() (err error) {
	was, g := s.run.Info(), s.Graph()
	beside, err := runs.Create(filepath.Dir(filepath.Dir(s.run.Dir)), was.Name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, beside.Close(), os.RemoveAll(beside.Dir))
		}
	}()
	text, err := s.textIn(beside.Dir, g)
	if err != nil {
		return err
	}
	if err := beside.WritePipeline(text); err != nil {
		return err
	}
	if err := beside.Lead(s.policy.Name); err != nil {
		return err
	}
	if err := beside.Update(func(i *runs.Info) { *i, i.Socket = was, "" }); err != nil {
		return err
	}
	s.beside.Store(beside)
	s.log.Error("the run's folder was removed: the run ends, and its state is saved in another", "folder", s.run.Dir, "saved", beside.Dir)
	if lost := s.lostModules(g); len(lost) > 0 {
		s.log.Error("modules that were swapped in were stored in the folder that was removed: a resumed run needs them again, by --set env.NAME.use=FILE",
			"modules", lost)
	}
	return nil
}

// lostModules are the modules of a graph that lie in the run's folder.
func (s *Session) lostModules(g *graph.Graph) (lost []string) {
	look := func(use string) string {
		if !filepath.IsAbs(use) {
			use = filepath.Join(g.Dir, use)
		}
		if inside, err := files.Relative(s.run.Dir, use); err == nil && filepath.IsLocal(inside) {
			lost = append(lost, use)
		}
		return use
	}
	for i := range g.Envs {
		if use, file := g.Envs[i].Table.Locate(g.Dir, s.o.Parts.Builtins); file {
			look(use)
		}
		for _, use := range g.Envs[i].Table.WrapModules() {
			look(use)
		}
	}
	for i := range g.Components {
		if m := g.Components[i].Module; m != nil {
			look(m.Table.Use)
		}
	}
	return lost
}
