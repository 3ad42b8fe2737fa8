package session

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// commands answers commands until close.
type commands struct {
	job     *job
	server  *control.Server
	stop    context.CancelFunc // ends the background work
	running sync.WaitGroup
}

// serve notes the running versions, stores their modules in the run's folder, and listens. The run need not have started.
func serve(o commandOptions) (*commands, error) {
	l := &live{commandOptions: o, log: cmp.Or(o.Log, slog.Default()), started: time.Now()}
	c := &commands{job: &job{live: l, history: newHistory(l), underWay: newUnderWay()}}
	if err := c.job.history.recall(); err != nil {
		return nil, err
	}
	c.job.history.mark()
	c.job.history.storeAll()
	if o.Begins {
		c.job.history.saidAtFirst()
	}
	socket := o.Socket
	if socket == "" {
		socket = control.SocketPath(o.Run.Dir)
	}
	server, err := control.Listen(socket, c.verbs(), control.ListenOptions{Log: c.job.log})
	if err != nil {
		return nil, err
	}
	c.server = server
	if err := o.Run.Update(func(i *runs.Info) { i.Socket = socket }); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	var life context.Context
	life, c.stop = context.WithCancel(context.Background())
	c.running.Go((&watcher{job: c.job, life: life, looked: time.Now()}).run)
	c.running.Go(func() { l.announce(life, socket) })
	return c, nil
}

func (c *commands) verbs() control.Verbs {
	v := control.Verbs{}
	changes, run := changer{c.job}, runVerbs{c.job}
	control.On(v, control.VerbStatus, statusReader{c.job}.status)
	control.On(v, control.VerbSwap, changes.swap)
	control.On(v, control.VerbRollback, changes.rollback)
	control.On(v, control.VerbReload, changes.reload)
	control.On(v, control.VerbScale, changes.scale)
	control.On(v, control.VerbRewire, changes.rewire)
	control.On(v, control.VerbPause, run.pause)
	control.On(v, control.VerbUnpause, run.resume)
	control.On(v, control.VerbCheckpoint, run.checkpoint)
	control.On(v, control.VerbStop, run.stop)
	control.On(v, control.VerbTap, tapper{c.job}.tap)
	control.On(v, control.VerbLogs, run.logs)
	control.On(v, control.VerbRequest, run.request)
	return v
}

// end says that the run has ended: clients that wait for that are answered, and nothing is changed any more. It returns
// once the run's folder has the outcome of the last change.
func (c *commands) end() {
	c.job.committing.Lock()
	defer c.job.committing.Unlock()
	c.job.underWay.end()
}

// close answers pending requests, and releases the socket. Call it after the pipeline's Run and before its Close.
func (c *commands) close() error {
	c.end()
	c.stop()
	err := c.server.Close()
	c.running.Wait()
	told := c.job.Run.Update(func(i *runs.Info) { i.Socket = "" })
	if errors.Is(told, runs.ErrGone) { // no client is left to tell
		told = nil
	}
	return errors.Join(err, told)
}
