package member

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/rlhost/rlhost/core/channel/remote"
	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
)

// What programs on joined hosts may use of the run's own machine, as lines name it: the run, and channels and servers by their names.
const (
	serviceRun     = "run"
	serviceChannel = "channel/"
	serviceServer  = "server/"
)

// largestShared is the most bytes that one item, or one answer, may have on its way: as many as a channel has by default.
const largestShared = 1<<30 + 1<<20

// sharing is the owner's end of lines. Its methods may be called from any goroutine.
type sharing struct {
	own      uint64 // incarnation
	job      string // socket of the run
	channels []string
	servers  []string

	mu     sync.Mutex
	hosts  map[string]hostLines // by key
	ending sync.WaitGroup
	over   bool
}

// hostLines are the lines of one host.
type hostLines struct {
	linesRequest
	lines *cluster.Lines
}

// accept takes the lines of a host, in place of its former ones. A host that asks again gets the same.
func (s *sharing) accept(link *cluster.Link, key string, q linesRequest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	former, ok := s.hosts[key]
	if s.over || ok && former.linesRequest == q && former.lines.Over() == nil {
		return nil
	}
	s.end(key)
	lines, err := link.Lines(cluster.LinesOptions{Key: key, Number: q.Number, Own: s.own, Other: q.Incarnation, Largest: largestShared, Accept: s.serve})
	if err == nil {
		s.hosts[key] = hostLines{q, lines}
	}
	return err
}

// serve serves one line.
func (s *sharing) serve(service string, line *cluster.Line) {
	kind, name, _ := strings.Cut(service, "/")
	switch {
	case service == serviceRun:
		control.Carry(s.job, line, control.VerbStatus, control.VerbRequest)
	case kind+"/" == serviceChannel && slices.Contains(s.channels, name):
		remote.Carry(name, line)
	case kind+"/" == serviceServer && slices.Contains(s.servers, name):
		control.Carry(control.ServerPath(name), line, control.VerbStatus, control.VerbRequest)
	default:
		_ = line.Close() // it never fails
	}
}

// gone ends the lines of a host. What its programs had is lost.
func (s *sharing) gone(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(key)
}

// end ends the lines of a host in the background, with mu held.
func (s *sharing) end(key string) {
	h, ok := s.hosts[key]
	if !ok {
		return
	}
	delete(s.hosts, key)
	s.ending.Go(h.lines.Close)
}

// close ends all lines and waits for them.
func (s *sharing) close() {
	s.mu.Lock()
	s.over = true
	for key := range s.hosts {
		s.end(key)
	}
	s.mu.Unlock()
	s.ending.Wait()
}

// served returns what hosts may use now, beside the run.
func (s *sharing) served() (list []string) {
	for _, name := range s.channels {
		if path, err := remote.SocketPath(name); err == nil && exists(path) {
			list = append(list, serviceChannel+name)
		}
	}
	for _, name := range s.servers {
		if exists(control.ServerPath(name)) {
			list = append(list, serviceServer+name)
		}
	}
	return list
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
