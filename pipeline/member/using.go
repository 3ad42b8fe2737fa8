package member

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/channel/remote"
	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/core/registry"
	names "github.com/rlhost/rlhost/core/registry/remote"
)

// using is a joined host's end of lines: it serves to programs of this user here what the run's own machine shares. Its methods may be called from
// any goroutine.
type using struct {
	ctx context.Context
	log *slog.Logger
	key string
	run string // its ID

	beginning sync.Mutex // held while lines begin
	number    uint64     // of the last ones
	closing   sync.WaitGroup

	mu          sync.Mutex
	link        *cluster.Link
	incarnation uint64
	lines       *cluster.Lines
	served      map[string]io.Closer
	tried       map[string]time.Time // services that another program of this machine served then
}

// tryAgain is how long a service of another program of this machine is left to it. Looking is a connection to that program.
const tryAgain = 10 * time.Second

var errCut = errors.New("its lease is over")

// renewed says that the lease lasts, and what the run's own machine shares now.
func (u *using) renewed(link *cluster.Link, incarnation uint64, shared []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.link != link || u.incarnation != incarnation {
		u.endLines()
		u.link, u.incarnation = link, incarnation
	}
	shared = append(slices.Clone(shared), serviceRun)
	for service, server := range u.served {
		if !slices.Contains(shared, service) {
			u.close(service, server)
		}
	}
	for _, service := range shared {
		if u.served[service] == nil && time.Since(u.tried[service]) > tryAgain {
			u.serve(service)
		}
	}
}

// cut says that the run's own machine does not answer: by now it counts what programs here had as lost.
func (u *using) cut() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.endLines()
	u.link = nil
}

func (u *using) endLines() {
	if u.lines != nil {
		u.lines.Close()
	}
	u.lines = nil
}

// end ends all serving, and waits.
func (u *using) end() {
	u.mu.Lock()
	u.endLines()
	u.link = nil
	for service, server := range u.served {
		u.close(service, server)
	}
	u.mu.Unlock()
	u.closing.Wait()
}

// close ends the serving of a service in the background, with mu held: a client may wait for lines to begin.
func (u *using) close(service string, server io.Closer) {
	delete(u.served, service)
	u.closing.Go(func() {
		if err := server.Close(); err != nil {
			u.log.Warn("a socket of the run is left on this host", "of", service, "why", err)
		}
	})
}

// serve serves a service here, with mu held. Where this machine has one of that name, programs here use that: it may be the run's own.
func (u *using) serve(service string) {
	open := func() (control.Line, error) { return u.open(service) }
	var server io.Closer
	var err error
	switch name, isChannel := strings.CutPrefix(service, serviceChannel); {
	case isChannel:
		server, err = remote.ServeNear(remote.NearOptions{Name: name, Open: open, Log: u.log})
	case service == serviceRun:
		server, err = serveNamed(names.Runs+u.run, u.run, u.log, open)
	default:
		name = strings.TrimPrefix(service, serviceServer)
		server, err = serveNamed(names.Servers+name, name, u.log, open)
	}
	switch {
	case err == nil:
		u.served[service] = server
	case errors.Is(err, ipc.ErrInUse):
		u.tried[service] = time.Now()
	default:
		u.log.Warn("programs here cannot use what the run shares", "of", service, "why", err)
		u.served[service] = io.NopCloser(nil) // it is said once
	}
}

// named is a server with a name.
type named struct {
	*control.Server
	unname context.CancelFunc
	over   sync.WaitGroup
}

// serveNamed serves as a server of that name.
func serveNamed(registered, name string, log *slog.Logger, open func() (control.Line, error)) (*named, error) {
	path := control.ServerPath(name)
	server, err := control.ServeLines(path, log, open)
	if err != nil {
		return nil, err
	}
	ctx, unname := context.WithCancel(context.Background())
	s := &named{Server: server, unname: unname}
	s.over.Go(func() {
		names.Announce(ctx, registry.Options{}, func() map[string]string { return map[string]string{registered: path} })
	})
	return s, nil
}

// Close ends it.
func (s *named) Close() error {
	s.unname()
	s.over.Wait()
	return s.Server.Close()
}

// open opens a line to a service. Lines begin with the first.
func (u *using) open(service string) (*cluster.Line, error) {
	u.beginning.Lock()
	defer u.beginning.Unlock()
	u.mu.Lock()
	link, incarnation, lines := u.link, u.incarnation, u.lines
	u.mu.Unlock()
	if link == nil {
		return nil, errCut
	}
	if lines == nil || lines.Over() != nil {
		var err error
		if lines, err = u.begin(link, incarnation); err != nil {
			return nil, err
		}
	}
	return lines.Open(service)
}

// begin begins lines, with beginning held.
func (u *using) begin(link *cluster.Link, incarnation uint64) (*cluster.Lines, error) {
	u.number++
	ctx, stop := context.WithTimeout(u.ctx, leaseTime)
	defer stop()
	text, err := link.Ask(ctx, cluster.SubjectUp(u.key, verbLines), encode(linesRequest{u.number, incarnation}))
	if err != nil {
		return nil, err
	}
	var reply linesReply
	if err := json.Unmarshal(text, &reply); err != nil {
		return nil, err
	}
	if reply.Incarnation == 0 {
		return nil, errCut
	}
	lines, err := link.Lines(cluster.LinesOptions{Key: u.key, Number: u.number, Own: incarnation, Other: reply.Incarnation, Largest: largestShared})
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.link != link || u.incarnation != incarnation {
		lines.Close()
		return nil, errCut
	}
	u.endLines()
	u.lines = lines
	return lines, nil
}
