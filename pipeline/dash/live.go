package dash

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"runtime"
	"sync"
	"time"

	"github.com/rlhost/rlhost/pipeline/play/web"
)

// CodeTooManyShown is the code of a live picture beside too many others.
const CodeTooManyShown = "E167"

// Bounds on live pictures.
const (
	liveRate  = 10   // a second
	liveShare = 0.1  // of a processor, each
	liveAll   = 0.02 // of the machine's processors, all that are shown
	maxLive   = 4    // at the same time
	liveWait  = 3 * time.Second
)

// Opener opens what a live picture of one run shows.
type Opener interface {
	// Open opens an evaluation instance of the run with its newest weights; n counts from 0.
	Open(ctx context.Context, n int) (*web.Stage, error)
	// Stale reports whether there are newer weights than were opened last.
	Stale() bool
}

// live are the live pictures of a server's runs. None is made before somebody looks.
type live struct {
	opener func(dir string) Opener
	shown  chan struct{} // a place for each that is shown

	mu      sync.Mutex
	screens map[string]*web.Screen // by the keys of runs
}

func newLive(opener func(dir string) Opener) *live {
	return &live{opener: opener, shown: make(chan struct{}, maxLive), screens: map[string]*web.Screen{}}
}

// of returns the screen of a run.
func (l *live) of(r *run) *web.Screen {
	l.mu.Lock()
	defer l.mu.Unlock()
	screen := l.screens[r.key]
	if screen == nil {
		opener := l.opener(r.dir)
		open := func(ctx context.Context, n int) (*web.Stage, error) { return l.open(ctx, opener, n) }
		screen = web.New(web.Options{Open: open, Stale: opener.Stale, Rate: liveRate, Share: l.share})
		l.screens[r.key] = screen
	}
	return screen
}

// share is how much of a processor each picture may take now.
func (l *live) share() float64 { return shareOf(runtime.NumCPU(), len(l.shown)) }

func shareOf(processors, shown int) float64 {
	return min(liveShare, liveAll*float64(processors)/float64(max(shown, 1)))
}

// open opens a stage where there is a place for one.
func (l *live) open(ctx context.Context, opener Opener, n int) (*web.Stage, error) {
	select {
	case l.shown <- struct{}{}:
	default:
		return nil, fmt.Errorf("error[%s]: the environments of %d runs are drawn already, as many as may be\n  help: close one of the pictures, and this one begins", CodeTooManyShown, maxLive)
	}
	stage, err := opener.Open(ctx, n)
	if err != nil {
		<-l.shown
		return nil, err
	}
	closed := stage.Close
	stage.Close = func() error {
		defer func() { <-l.shown }()
		return closed()
	}
	return stage, nil
}

// close ends all.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, screen := range l.screens {
		screen.Close()
	}
}

// frames streams the pictures of a run.
func (s *Server) frames(w http.ResponseWriter, r *http.Request) {
	one, err := s.find.run(r.URL.Query().Get("run"))
	if err != nil || one == nil || s.o.Opener == nil {
		http.NotFound(w, r)
		return
	}
	if !s.begin(w) {
		return
	}
	defer s.end()
	_ = s.live.of(one).Frames(w, r) // the page has left
}

// picture puts a live picture, or the address of some, into the page of a run.
func (s *Server) picture(ctx context.Context, p *page, one *run, asked url.Values) {
	if s.o.Opener == nil {
		return
	}
	p.Live = "live?" + url.Values{"run": {one.key}}.Encode()
	if !asked.Has("live") {
		return
	}
	ctx, done := context.WithTimeout(ctx, liveWait)
	defer done()
	still := s.live.of(one).Still(ctx)
	p.LiveStill, p.LiveImage = &still, template.URL(still.Picture) // of a PNG alone
}
