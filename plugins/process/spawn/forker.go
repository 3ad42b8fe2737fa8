package spawn

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"

	"github.com/rlhost/rlhost/core/place"
)

// forkers start programs, each from a thread of the program's priority: a program inherits its place from the thread that starts it, before it
// is executed, and a thread that has stood back may not go forward again.
type forkers struct {
	mu   sync.Mutex
	list map[int]*forker // by nice value; guarded by mu
}

func newForkers() *forkers { return &forkers{list: map[int]*forker{}} }

// start is cmd.Start at a place. It must not be called after stop.
func (f *forkers) start(cmd *exec.Cmd, at place.Place) error {
	f.mu.Lock()
	one := f.list[at.Nice]
	if one == nil {
		one = newForker(at.Nice)
		f.list[at.Nice] = one
	}
	f.mu.Unlock()
	return one.start(cmd, at.Cores)
}

// stop ends the threads, and with them all their children that are still alive.
func (f *forkers) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.list {
		one.stop()
	}
}

// forker starts programs from one thread that lives as long as the runtime. The kernel ends a child with its parent
// (Pdeathsig), and the parent that it means is the thread that made it: a child of any other goroutine would be
// killed whenever Go ends that goroutine's thread.
type forker struct {
	jobs  chan func()
	ended chan struct{}
	all   place.Cores // that the thread may use
	err   error       // why it does not have its priority
}

func newForker(nice int) *forker {
	f := &forker{jobs: make(chan func()), ended: make(chan struct{})}
	go f.run(nice)
	return f
}

// run never unlocks its thread, so that no other goroutine's locking can end it.
func (f *forker) run(nice int) {
	defer close(f.ended)
	runtime.LockOSThread()
	f.all, f.err = place.Available()
	if nice != 0 {
		f.err = errors.Join(f.err, place.SetNice(nice))
	}
	for job := range f.jobs {
		job()
	}
}

// start is cmd.Start on some processors; an empty text is all.
func (f *forker) start(cmd *exec.Cmd, cores string) error {
	answer := make(chan error, 1)
	f.jobs <- func() { answer <- f.startOn(cmd, cores) }
	return <-answer
}

// startOn runs on the thread. Where none of the processors is there the program runs on any: who only describes itself may, and a run has
// been refused before.
func (f *forker) startOn(cmd *exec.Cmd, cores string) (err error) {
	if f.err != nil {
		return f.err
	}
	if cores == "" {
		return cmd.Start()
	}
	on, err := place.ParseCores(cores)
	if err != nil {
		return err
	}
	if on = on.Without(on.Without(f.all)); len(on) == 0 {
		return cmd.Start()
	}
	if err := on.Pin(); err != nil {
		return err
	}
	err = cmd.Start()
	f.err = f.all.Unpin() // what has been started runs
	return err
}

// stop ends the thread, and with it all its children that are still alive.
func (f *forker) stop() {
	close(f.jobs)
	<-f.ended
}
