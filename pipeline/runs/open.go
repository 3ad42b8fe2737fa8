package runs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Words that select one of several.
const (
	Latest = "latest"
	Best   = "best"
)

// ErrNotFound is wrapped where a run or a checkpoint does not exist; the message lists the existing ones.
var ErrNotFound = errors.New("not found")

// Open finds a run and opens it for reading: by the path of its folder, by name (its newest run), by name and
// number as in cartpole/7, or "latest" of all runs in dir. An error lists the existing runs.
func Open(dir, which string) (*Run, error) {
	if which == "" {
		which = Latest
	}
	if r, err := openFolder(which); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if which == Latest {
		return openLatest(dir)
	}
	name, number, numbered := strings.Cut(filepath.ToSlash(which), "/")
	if n, ok := parseNumber(number); ok && numbered {
		r, err := openFolder(filepath.Join(dir, name, numberName(n)))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
		return nil, missing(dir, which)
	}
	// A name, or the path of a name's folder.
	for _, parent := range []string{filepath.Join(dir, which), which} {
		if r, err := openNewest(parent); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
	return nil, missing(dir, which)
}

// openFolder opens the run in a folder. The error is fs.ErrNotExist if it has no run.json.
func openFolder(path string) (*Run, error) {
	info, err := readInfo(path)
	if errors.Is(err, fs.ErrNotExist) || isNotDir(path, err) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	return newRun(path, info), nil
}

// isNotDir reports whether reading in path failed because path is a file.
func isNotDir(path string, err error) bool {
	if err == nil {
		return false
	}
	stat, statErr := os.Stat(path)
	return statErr == nil && !stat.IsDir()
}

// openNewest opens the run with the highest number in the folder of a name.
func openNewest(parent string) (*Run, error) {
	numbers, err := numbersIn(parent)
	if err != nil {
		return nil, fs.ErrNotExist
	}
	for _, n := range slices.Backward(numbers) {
		r, err := openFolder(filepath.Join(parent, numberName(n)))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return r, err
		}
	}
	return nil, fs.ErrNotExist
}

func openLatest(dir string) (*Run, error) {
	infos, err := List(dir)
	if err != nil {
		return nil, err
	}
	if len(infos) == 0 {
		return nil, missing(dir, Latest)
	}
	last := infos[len(infos)-1]
	return openFolder(filepath.Join(dir, last.Name, numberName(last.Number)))
}

// List describes the runs in dir, in the order of their starts. Folders that hold no run, or one that this program
// cannot read, are left out. A dir that does not exist has none.
func List(dir string) ([]Info, error) {
	infos, err := described(dir, "runs", readInfo, func(i *Info, name string, number int) { i.Name, i.Number = name, number })
	slices.SortStableFunc(infos, func(a, b Info) int { return a.Started.Compare(b.Started) })
	return infos, err
}

// described reads the description of every numbered folder in dir that has one. place gives it the names of its folders: a
// renamed folder counts under its current name.
func described[T any](dir, what string, read func(dir string) (T, error), place func(t *T, name string, number int)) ([]T, error) {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", what, advise(err, dir))
	}
	var all []T
	for _, e := range names {
		parent := filepath.Join(dir, e.Name())
		numbers, err := numbersIn(parent)
		if err != nil {
			continue
		}
		found := make([]*T, len(numbers))
		each(len(numbers), func(i int) {
			if t, err := read(filepath.Join(parent, numberName(numbers[i]))); err == nil {
				place(&t, e.Name(), numbers[i])
				found[i] = &t
			}
		})
		for _, t := range found {
			if t != nil {
				all = append(all, *t)
			}
		}
	}
	return all, nil
}

// each calls do for 0 to n-1, several at a time.
func each(n int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// missing says that a run does not exist, and which do.
func missing(dir, which string) error {
	infos, err := List(dir)
	if err != nil {
		return err
	}
	if len(infos) == 0 {
		return fmt.Errorf("run %q %w: there is no run in %s yet; rlhost train starts one", which, ErrNotFound, dir)
	}
	const shown = 8
	var ids []string
	for _, i := range slices.Backward(infos) {
		if len(ids) == shown {
			ids = append(ids, "…")
			break
		}
		ids = append(ids, i.ID())
	}
	return fmt.Errorf("run %q %w in %s: there are, newest first, %s", which, ErrNotFound, dir, strings.Join(ids, ", "))
}

// Live opens the runs in dir that a process writes to now, the one started last at the end. They are open for
// reading, as from Open.
func Live(dir string) ([]*Run, error) {
	infos, err := List(dir)
	if err != nil {
		return nil, err
	}
	var live []*Run
	for i := range infos {
		r, err := openFolder(filepath.Join(dir, infos[i].Name, numberName(infos[i].Number)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if pid, err := r.Holder(); err == nil && pid != 0 {
			live = append(live, r)
		}
	}
	return live, nil
}
