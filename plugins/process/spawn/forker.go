package spawn

import (
	"os/exec"
	"runtime"
)

// forker starts programs from one thread that lives as long as the runtime. The kernel ends a child with its parent
// (Pdeathsig), and the parent that it means is the thread that made it: a child of any other goroutine would be
// killed whenever Go ends that goroutine's thread.
type forker struct {
	jobs  chan func()
	ended chan struct{}
}

func newForker() *forker {
	f := &forker{jobs: make(chan func()), ended: make(chan struct{})}
	go f.run()
	return f
}

// run never unlocks its thread, so that no other goroutine's locking can end it.
func (f *forker) run() {
	defer close(f.ended)
	runtime.LockOSThread()
	for job := range f.jobs {
		job()
	}
}

// start is cmd.Start. It must not be called after stop.
func (f *forker) start(cmd *exec.Cmd) error {
	answer := make(chan error, 1)
	f.jobs <- func() { answer <- cmd.Start() }
	return <-answer
}

// stop ends the thread, and with it all its children that are still alive.
func (f *forker) stop() {
	close(f.jobs)
	<-f.ended
}
