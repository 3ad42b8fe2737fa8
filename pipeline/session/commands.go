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
	*shared
	server  *control.Server
	stop    context.CancelFunc // ends what goes on by itself
	running sync.WaitGroup
}

// serve notes what runs, stores the modules of it in the run's folder, and listens. The run need not go on yet.
func serve(o commandOptions) (*commands, error) {
	l := &live{commandOptions: o, log: cmp.Or(o.Log, slog.Default()), started: time.Now()}
	c := &commands{shared: &shared{history: newHistory(l), underWay: newUnderWay()}}
	if err := c.recall(); err != nil {
		return nil, err
	}
	c.mark()
	c.storeAll()
	if o.Begins {
		c.saidAtFirst()
	}
	socket := o.Socket
	if socket == "" {
		socket = control.SocketPath(o.Run.Dir)
	}
	server, err := control.Listen(socket, c.verbs(), c.log)
	if err != nil {
		return nil, err
	}
	c.server = server
	if err := o.Run.Update(func(i *runs.Info) { i.Socket = socket }); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	var life context.Context
	life, c.stop = context.WithCancel(context.Background())
	c.running.Go((&watcher{shared: c.shared, life: life, looked: time.Now()}).run)
	return c, nil
}

func (c *commands) verbs() control.Verbs {
	v := control.Verbs{}
	changes, run := changer{c.shared}, runVerbs{c.shared}
	control.On(v, control.VerbStatus, statusReader{c.shared}.status)
	control.On(v, control.VerbSwap, changes.swap)
	control.On(v, control.VerbRollback, changes.rollback)
	control.On(v, control.VerbReload, changes.reload)
	control.On(v, control.VerbScale, changes.scale)
	control.On(v, control.VerbPause, run.pause)
	control.On(v, control.VerbResume, run.resume)
	control.On(v, control.VerbCheckpoint, run.checkpoint)
	control.On(v, control.VerbStop, run.stop)
	control.On(v, control.VerbTap, tapper{c.shared}.tap)
	control.On(v, control.VerbLogs, run.logs)
	return v
}

// end says that the run has ended: those who wait for that are answered, and nothing is changed any more. It returns once
// the run's folder says what the last change has come to.
func (c *commands) end() {
	c.committing.Lock()
	defer c.committing.Unlock()
	c.underWay.end()
}

// close answers those who still ask, and gives the socket back. Call it after the pipeline's Run and before its Close.
func (c *commands) close() error {
	c.end()
	c.stop()
	err := c.server.Close()
	c.running.Wait()
	told := c.Run.Update(func(i *runs.Info) { i.Socket = "" })
	if errors.Is(told, runs.ErrGone) { // there is nobody to tell
		told = nil
	}
	return errors.Join(err, told)
}
