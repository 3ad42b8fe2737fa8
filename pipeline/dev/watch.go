package dev

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rlhost/rlhost/core/files"
)

// Editors write a file in several steps, and save several files at once: a batch ends when nothing has happened for quiet, at the latest
// after longest.
const (
	quiet   = 25 * time.Millisecond
	longest = 250 * time.Millisecond
)

// maxFolders bounds the folders that are watched: each takes memory of the kernel, which allows so many to a user.
const maxFolders = 2000

// sourceEndings are the endings of files that programs are made from.
var sourceEndings = []string{
	".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hh", ".rs", ".go", ".mod", ".zig", ".zon", ".ts", ".js", ".mjs", ".py", ".pyx", ".pyi", ".nim", ".odin",
	".s", ".wat", ".toml", ".sh", ".mk", ".cmake",
}

// sourceNames are such files without an ending.
var sourceNames = []string{"Makefile", "makefile", "GNUmakefile", "CMakeLists.txt", "justfile", "package.json"}

// skippedFolders have no sources of the author. Hidden ones are skipped too.
var skippedFolders = []string{"node_modules", "target", "__pycache__", "zig-out", "build", "dist", "site-packages"}

// watcher tells of changed files in folders and all below them. A file has changed when its content has.
type watcher struct {
	fs      *fsnotify.Watcher
	skip    []string          // absolute paths of folders that are left out
	known   map[string]string // by path: the SHA-256 of the content as last seen
	folders int

	mu    sync.Mutex
	extra []string // under mu: absolute paths of files that count whatever their ending
}

// newWatcher watches folders. skip names folders below them that are left out.
func newWatcher(folders, skip []string) (*watcher, error) {
	inner, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, watchError(err)
	}
	w := &watcher{fs: inner, skip: skip, known: map[string]string{}}
	for _, folder := range folders {
		if err := w.add(folder, w.seen); err != nil {
			return nil, errors.Join(err, inner.Close())
		}
	}
	return w, nil
}

// watchError gives the remedy where the kernel allows no more.
func watchError(err error) error {
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("no more files can be watched by this user: %w\n  help: sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512, as root", err)
	}
	return fmt.Errorf("watch the sources: %w", err)
}

func (w *watcher) close() error { return w.fs.Close() }

// add watches a folder and all below it, and calls found for each file that lies there.
func (w *watcher) add(folder string, found func(path string)) error {
	return filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it has gone meanwhile, or is not this user's: it has no sources then
		}
		if !d.IsDir() {
			found(path)
			return nil
		}
		if path != folder && w.skips(path) {
			return filepath.SkipDir
		}
		if w.folders++; w.folders > maxFolders {
			return fmt.Errorf("%s has more than %d folders; sources are watched with all below their folder\n  help: put the pipeline into the folder of its sources", folder, maxFolders)
		}
		if err := w.fs.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return watchError(err)
		}
		return nil
	})
}

// expect sets the files that count whatever their ending. Any goroutine may call it.
func (w *watcher) expect(extra []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.extra = extra
}

// skips reports whether a folder is left out.
func (w *watcher) skips(path string) bool {
	name := filepath.Base(path)
	return strings.HasPrefix(name, ".") || slices.Contains(skippedFolders, name) || slices.Contains(w.skip, path)
}

// counts reports whether a file is a source, or one of the extra ones.
func (w *watcher) counts(path string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains(w.extra, path) {
		return true
	}
	name := filepath.Base(path)
	return !strings.HasPrefix(name, ".") && (slices.Contains(sourceNames, name) || slices.Contains(sourceEndings, filepath.Ext(name)))
}

// changed reports whether a file that counts has another content than when it was last looked at, or has gone.
func (w *watcher) changed(path string) bool {
	if !w.counts(path) {
		return false
	}
	sum, _ := files.SHA256(path) // empty for a file that is not there
	before, seen := w.known[path]
	w.known[path] = sum
	return seen && sum != before || !seen && sum != ""
}

// seen takes a file as it is: what the caller has written is no change.
func (w *watcher) seen(path string) { w.changed(path) }

// next waits for changed files and returns their paths, sorted. It returns nil when ctx ends.
func (w *watcher) next(ctx context.Context) ([]string, error) {
	for {
		touched, err := w.batch(ctx)
		if err != nil || touched == nil {
			return nil, err
		}
		var list []string
		for path := range touched {
			if w.changed(path) {
				list = append(list, path)
			}
		}
		if len(list) > 0 {
			slices.Sort(list)
			return list, nil
		}
	}
}

// batch collects the paths that events name until nothing more happens.
func (w *watcher) batch(ctx context.Context) (touched map[string]bool, err error) {
	var settled, enough <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-settled:
			return touched, nil
		case <-enough:
			return touched, nil
		case err := <-w.fs.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return nil, watchError(err)
			}
			touched = w.all(touched)
		case e, ok := <-w.fs.Events:
			if !ok {
				return nil, errors.New("watch the sources: the watch has ended")
			}
			for _, path := range w.named(e) {
				if touched == nil {
					touched, enough = map[string]bool{}, time.After(longest)
				}
				touched[path] = true
			}
		}
		if touched != nil {
			settled = time.After(quiet)
		}
	}
}

// named returns the files that count of an event. A new folder is watched from here on, and all its files are named.
func (w *watcher) named(e fsnotify.Event) (list []string) {
	note := func(path string) {
		if w.counts(path) {
			list = append(list, path)
		}
	}
	info, err := os.Lstat(e.Name)
	switch {
	case e.Op == fsnotify.Chmod:
	case err != nil || !info.IsDir():
		note(e.Name)
	case e.Op.Has(fsnotify.Create) && !w.skips(e.Name):
		_ = w.add(e.Name, note) // the others are watched still
	}
	return list
}

// all names every file that is known: the kernel has dropped events.
func (w *watcher) all(touched map[string]bool) map[string]bool {
	if touched == nil {
		touched = map[string]bool{}
	}
	for path := range w.known {
		touched[path] = true
	}
	return touched
}
