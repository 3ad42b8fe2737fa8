package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Codes of warnings.
const (
	CodeNoBuild = "W127" // a module that nobody builds
	CodeNoFile  = "W128" // the pipeline file is not there
)

// Loop keeps one run up to date. Its fields are set before Open. Its methods are called by one goroutine.
type Loop struct {
	File string                            // the pipeline file
	Sets []string                          // overrides that the run was begun with: each reload repeats them
	Skip []string                          // folders that are not watched, absolute
	Read func(path string) ([]byte, error) // reads the file
	// Dial connects to the run. It is called again where a connection was lost. It may be set after Open.
	Dial func(ctx context.Context) (*control.Client, error)
	Say  func(text string) // a line, or several where a compiler has more to say

	dir    string
	builds []graph.Build
	watch  *watcher
	run    remote
}

// Open reads the file, watches its folder and builds everything once. ok is false where a build has failed, which has been said.
// Close ends the watch.
func (l *Loop) Open(ctx context.Context) (ok bool, err error) {
	if l.File, err = filepath.Abs(l.File); err != nil {
		return false, err
	}
	l.dir = filepath.Dir(l.File)
	l.run.dial = func(ctx context.Context) (*control.Client, error) { return l.Dial(ctx) }
	src, err := l.Read(l.File)
	if err != nil {
		return false, err
	}
	if l.builds, err = l.buildsOf(src); err != nil {
		return false, err
	}
	if l.watch, err = newWatcher(l.folders(), l.Skip); err != nil {
		return false, err
	}
	l.watch.expect(l.extra())
	l.warn()
	made, err := l.make(ctx, l.builds)
	if err != nil {
		l.Say(err.Error())
		return false, context.Cause(ctx)
	}
	if text := builtText(made); text != "" {
		l.Say(text)
	}
	return true, nil
}

// Close ends the watch and the connection.
func (l *Loop) Close() error {
	l.run.close()
	if l.watch == nil {
		return nil
	}
	return l.watch.close()
}

// Wait returns once something has been saved and everything could be built: a run that could not begin is worth another try.
func (l *Loop) Wait(ctx context.Context) error {
	for {
		list, err := l.watch.next(ctx)
		if list == nil {
			return errors.Join(err, context.Cause(ctx))
		}
		s := l.save(list)
		if err := l.prepare(ctx, s, true); err == nil {
			l.Say(s.String())
			return nil
		} else if ctx.Err() == nil {
			l.Say(s.failed(err))
		}
	}
}

// lookEvery is how often the run is asked whether it has taken back a version.
const lookEvery = 500 * time.Millisecond

// Run brings what is saved into the run, until that or ctx ends, which is no error. A save while the one before is being built or brought in
// begins again with both.
func (l *Loop) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	saves, failed := l.saves(ctx)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var list []string
	for !l.run.ended && ctx.Err() == nil {
		if list == nil {
			select {
			case <-ctx.Done():
			case err := <-failed:
				return err
			case list = <-saves:
			case <-tick.C:
				_, _ = l.look(ctx) // a run that does not answer has ended, or will later
			}
			continue
		}
		list = l.bring(ctx, list, saves)
	}
	return nil
}

// saves watches on a goroutine of its own.
func (l *Loop) saves(ctx context.Context) (saves chan []string, failed chan error) {
	saves, failed = make(chan []string), make(chan error, 1)
	go func() {
		for {
			list, err := l.watch.next(ctx)
			if list == nil {
				failed <- err
				return
			}
			select {
			case saves <- list:
			case <-ctx.Done():
				return
			}
		}
	}()
	return saves, failed
}

// bring brings one save into the run. It returns what is to be brought in next: that too, where another save has come before it was in.
func (l *Loop) bring(ctx context.Context, list []string, saves <-chan []string) []string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, done := l.save(list), make(chan struct{})
	go func() {
		defer close(done)
		l.serve(ctx, s)
	}()
	select {
	case <-done:
		return nil
	case more := <-saves:
		cancel()
		<-done
		if s.in {
			return more
		}
		list = append(list, more...)
		slices.Sort(list)
		return slices.Compact(list)
	}
}

// serve builds and reloads for a save, and says what has become of it. It says nothing of a save that another one has overtaken.
func (l *Loop) serve(ctx context.Context, s *save) {
	err := l.prepare(ctx, s, false)
	if err == nil {
		err = l.reload(ctx, s)
	}
	switch {
	case l.run.ended, ctx.Err() != nil && !s.in:
	case err != nil:
		l.Say(s.failed(err))
	default:
		l.settle(ctx, s)
		l.Say(s.String())
	}
}

// look asks for the status, and says that the run has taken back a version.
func (l *Loop) look(ctx context.Context) (*control.StatusReply, error) {
	before := l.run.last
	status, err := l.run.status(ctx)
	if err != nil || before == nil || status.Swaps.RolledBack == before.Swaps.RolledBack {
		return status, err
	}
	if why := whyRolledBack(status); why != "" {
		l.Say(why)
	} else {
		l.run.last = before // it says so in a moment
	}
	return status, nil
}

// read returns the pipeline file of a run that runs.
func (l *Loop) read() ([]byte, error) {
	if _, err := os.Stat(l.File); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("warning[%s]: %s is not there any more\n  help: save it again", CodeNoFile, filepath.Base(l.File))
	}
	return l.Read(l.File)
}

// buildsOf returns what a pipeline file says about builds.
func (l *Loop) buildsOf(src []byte) ([]graph.Build, error) {
	list, problems := graph.Builds(l.File, src)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return list, nil
}

// folders are the folders that are watched: the pipeline's, and the ones of modules and programs elsewhere.
func (l *Loop) folders() []string {
	list := []string{l.dir}
	for i := range l.builds {
		folder := filepath.Dir(l.builds[i].Output)
		inside := func(of string) bool { return within(of, folder) }
		if l.builds[i].Output != "" && !slices.ContainsFunc(list, inside) {
			list = append(list, folder)
		}
	}
	return list
}

// within reports whether a path is a folder, or below it.
func within(folder, path string) bool {
	inside, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(inside)
}

// extra are the files that count whatever their ending: what others build. What this one builds is no change.
func (l *Loop) extra() (paths []string) {
	for i := range l.builds {
		if b := &l.builds[i]; b.Command == "" {
			paths = append(paths, b.Output)
		}
	}
	return paths
}

// warn names the modules that nobody builds.
func (l *Loop) warn() {
	for i := range l.builds {
		if b := &l.builds[i]; b.Command == "" && filepath.Ext(b.Output) == ".wasm" {
			l.Say(fmt.Sprintf("warning[%s]: %s: nothing says how %s is built: it is brought in when that file changes\n  help: build = \"./build.sh\" in [%s]",
				CodeNoBuild, b.At, filepath.Base(b.Output), b.Of))
		}
	}
}
