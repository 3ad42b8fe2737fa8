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
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/calls"
	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/members"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Times without an answer of the owner.
const (
	grace   = 10 * time.Second // then a host says that it waits
	abandon = 10 * time.Minute // then it ends
)

// JoinOptions are what a host joins with.
type JoinOptions struct {
	Token    cluster.Token
	Creds    string // file of credentials for the servers of a token in an external cluster, or empty
	CA       string // file of the authority that has signed their certificate, or empty
	Name     string // proposed
	Version  string // of rlhost
	Cores    int
	Memory   uint64 // bytes
	Kernels  string // that policies are computed with here
	Slots    int    // units of the pipeline that it may have
	Labels   map[string]string
	Log      *slog.Logger
	Parts    *graph.Parts      // that its part of the run is made of
	Cache    *Cache            // of files of runs
	Programs Programs          // of runs that may run here
	Joined   func(name string) // called whenever it has joined; may be nil

	// Called does what the run's own host asks for, one call after another, and returns the reply; nil: this host does nothing for it. See
	// Service.Callees.
	Called func(call []byte) []byte
}

// Join makes this machine a host of a run until ctx ends, when it leaves, or the run does; both are nil. An error says why it cannot join, or that
// the run has been silent for too long.
func Join(ctx context.Context, o JoinOptions) error {
	identity, err := cluster.NewIdentity()
	if err != nil {
		return err
	}
	j := &joining{
		o: o, identity: identity, begun: time.Now(), arrived: make(chan func(), 1), parted: make(chan parted), over: make(chan struct{}, 1),
	}
	ctx, stop := context.WithCancelCause(ctx)
	j.ctx = ctx
	j.using = &using{ctx: ctx, log: o.Log, key: identity.Key(), run: o.Token.Run, served: map[string]io.Closer{}, tried: map[string]time.Time{}}
	defer j.close()
	defer j.using.end()
	defer stop(nil) // before that
	j.answerer = j.answers()
	j.member = members.NewMember(0, j, members.MemberOptions{
		Request: members.Request{
			Key: identity.Key(), Attempt: 1, Name: o.Name, Version: o.Version, Cores: o.Cores, Memory: o.Memory, Kernels: o.Kernels, Slots: o.Slots, Labels: o.Labels,
		},
		Every: renewEvery, Grace: grace, Abandon: abandon,
	})
	return j.run()
}

// link says how a host reaches its run: with the token's key, or with its own once it is admitted.
func (o *JoinOptions) link(identity *cluster.Identity) cluster.LinkOptions {
	if o.Token.Shared() {
		return cluster.LinkOptions{External: &cluster.External{Servers: strings.Split(o.Token.Address, ","), Creds: o.Creds, CA: o.CA}, Prefix: o.Token.Prefix}
	}
	return cluster.LinkOptions{Token: o.Token, Identity: identity}
}

// joining is one call of Join. All but what a question does belongs to the goroutine of run.
type joining struct {
	o        JoinOptions
	ctx      context.Context
	identity *cluster.Identity
	member   *members.Member
	begun    time.Time

	arrived  chan func() // what the answer to the question under way means
	changes  uint64      // of the owner, up to which this host follows it
	running  sync.WaitGroup
	parted   chan parted
	under    bool                         // a question is
	over     chan struct{}                // the owner has told that the run is over
	link     *cluster.Link                // with the token's key or, once admitted, with the host's own
	own      bool                         // the latter
	way      atomic.Pointer[cluster.Link] // link, once own
	answerer *calls.Answerer
	joined   uint64 // incarnation that has been told
	waits    bool   // it has been told that the owner is silent
	err      error  // why it ends
	using    *using
	renewed  time.Duration // when the lease was last, by the owner's word
	weights  shelf

	mu    sync.Mutex
	parts []*part // what runs here
}

// parted says that a part has ended.
type parted struct {
	part *part
	err  error
}

func (j *joining) now() time.Duration { return time.Since(j.begun) }

func (j *joining) run() error {
	for j.err == nil {
		timer := time.NewTimer(max(j.member.Deadline()-j.now(), time.Millisecond))
		select {
		case <-j.ctx.Done():
			j.leave(nil)
			return nil
		case <-j.over:
			j.o.Log.Info("the run is over")
			return nil
		case ended := <-j.parted:
			if j.remove(ended.part) {
				why := partFailed(ended.err)
				j.leave(why)
				return why
			}
			if ended.err != nil {
				j.o.Log.Warn("what the run had on this host has ended", "why", ended.err)
			}
		case meaning := <-j.arrived:
			j.under = false
			meaning()
		case <-timer.C:
			j.member.Tick(j.now())
		}
		timer.Stop()
		j.judge()
	}
	return j.err
}

// judge says what has changed, and ends where the owner has been silent for too long.
func (j *joining) judge() {
	if j.now()-j.renewed > leaseTime {
		j.using.cut()
	}
	pauses, over := j.member.Pauses(j.now())
	if pauses && !j.waits {
		j.o.Log.Warn("the run does not answer", "address", j.o.Token.Address)
	}
	j.waits = pauses
	if over && j.err == nil {
		e := control.Errorf(CodeSilent, "the run at %s has not answered for %v", j.o.Token.Address, abandon)
		e.Help = "see whether it has ended; if it has been resumed, join it with its new token"
		j.err = e
	}
}

// ask does one question on a goroutine of its own, unless one is under way, and posts what its answer means.
func (j *joining) ask(question func(ctx context.Context) (meaning func())) {
	if j.under {
		return
	}
	j.under = true
	go func() {
		ctx, stop := context.WithTimeout(j.ctx, leaseTime)
		defer stop()
		j.arrived <- question(ctx) // there is room: one question is under way
	}()
}

// Ask is members.MemberPort's.
func (j *joining) Ask(r members.Request) {
	link := j.link
	if j.own {
		link = nil
	}
	j.ask(func(ctx context.Context) func() {
		var err error
		if link == nil {
			if link, err = cluster.Connect(ctx, j.o.link(nil)); err != nil {
				return func() { j.failed(err) }
			}
		}
		reply := askReply{}
		text, err := link.Ask(ctx, cluster.SubjectAsk(j.o.Token.Key()), encode(r))
		if err == nil {
			err = json.Unmarshal(text, &reply)
		}
		return func() {
			j.use(link, false)
			switch {
			case errors.Is(err, cluster.ErrNobody):
				j.failed(err)
			case err != nil: // it is asked again
			case reply.Refused != nil:
				j.err = reply.Refused
			case reply.Grant != nil:
				j.member.Granted(j.now(), *reply.Grant)
			}
		}
	})
}

// failed takes the error of a connection. The first attempt tells the user. Later ones are repeated, unless another run is there, or the same in another
// process: that never lets this host in.
func (j *joining) failed(err error) {
	other := errors.Is(err, cluster.ErrCertificate) || errors.Is(err, cluster.ErrKey) && !j.o.Token.Shared()
	if j.joined == 0 && j.ctx.Err() == nil || other {
		j.err = unreachable(&j.o.Token, err)
	}
}

// Connect is members.MemberPort's.
func (j *joining) Connect(g members.Grant) {
	j.ask(func(ctx context.Context) func() {
		link, err := cluster.Connect(ctx, j.o.link(j.identity))
		if err == nil {
			err = errors.Join(link.Answer(cluster.SubjectAll, j.told), link.Answer(cluster.SubjectDown(j.identity.Key(), verbState), j.hear),
				link.Answer(cluster.SubjectDown(j.identity.Key(), verbCall), j.called))
		}
		return func() {
			switch {
			case errors.Is(err, cluster.ErrKey):
				j.member.Refused(j.now(), g.Incarnation)
			case err != nil:
				j.failed(err)
			default:
				j.use(link, true)
				j.member.Connected(j.now(), g.Incarnation)
			}
		}
	})
}

// told takes what the owner tells all hosts.
func (j *joining) told(_ string, data []byte) []byte {
	if string(data) == tellOver {
		select {
		case j.over <- struct{}{}:
		default:
		}
	}
	return nil
}

// Renew is members.MemberPort's.
func (j *joining) Renew(incarnation uint64) {
	link := j.link
	j.ask(func(ctx context.Context) func() {
		reply, err := lease(ctx, link, j.identity.Key(), verbRenew, leaseRequest{Incarnation: incarnation})
		return func() {
			switch {
			case err != nil && link.Over():
				j.member.Refused(j.now(), incarnation)
			case err != nil: // it is renewed again
			case reply.Stranger:
				j.member.Stranger(j.now(), incarnation)
			default:
				j.member.Renewed(j.now(), incarnation)
				j.renewed = j.now()
				j.using.renewed(link, incarnation, reply.Shared)
				if reply.Changes > j.changes {
					j.change(incarnation)
				}
				j.tell(incarnation)
			}
		}
	})
}

// tell says that this host has joined, once an incarnation.
func (j *joining) tell(incarnation uint64) {
	if j.joined == incarnation {
		return
	}
	j.joined = incarnation
	if j.o.Joined != nil {
		j.o.Joined(j.member.Name())
	}
}

func lease(ctx context.Context, link *cluster.Link, key, verb string, r leaseRequest) (reply leaseReply, err error) {
	text, err := link.Ask(ctx, cluster.SubjectUp(key, verb), encode(r))
	if err != nil {
		return leaseReply{}, err
	}
	return reply, json.Unmarshal(text, &reply)
}

// use takes a connection in place of the one before.
func (j *joining) use(link *cluster.Link, own bool) {
	if j.link != nil && j.link != link {
		j.link.Close()
	}
	j.link, j.own = link, own
	if !own {
		return
	}
	j.way.Store(link)
	for _, p := range j.all() {
		if err := p.move(link); err != nil {
			j.o.Log.Warn("a part of the run here has no way to it", "why", err)
		}
	}
}

func (j *joining) all() []*part {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.parts)
}

// hear gives all parts what the owner tells this host.
func (j *joining) hear(_ string, data []byte) []byte {
	if s, err := readState(data); err == nil {
		for _, p := range j.all() {
			p.hear(s)
		}
	}
	return nil
}

// change gets the shares of this host, ends the ones that are over, and begins new ones.
func (j *joining) change(incarnation uint64) {
	link := j.link
	j.ask(func(ctx context.Context) func() {
		var w workReply
		text, err := link.Ask(ctx, cluster.SubjectUp(j.identity.Key(), verbWork), []byte("{}"))
		if err == nil {
			err = json.Unmarshal(text, &w)
		}
		return func() {
			if err != nil {
				j.o.Log.Warn("the run does not say what is to run here", "why", err)
				return
			}
			j.work(&w, incarnation)
		}
	})
}

func (j *joining) work(w *workReply, incarnation uint64) {
	j.changes = w.Changes
	for _, p := range j.all() {
		if !slices.ContainsFunc(w.Shares, func(s share) bool { return s.Number == p.share.Number }) {
			j.o.Log.Info("components of the run have gone to another host", "components", p.share.Instances)
			j.remove(p)
			p.stop(nil)
		}
	}
	for _, s := range w.Shares {
		if !slices.ContainsFunc(j.all(), func(p *part) bool { return p.share.Number == s.Number }) {
			j.begin(w, s, incarnation)
		}
	}
}

// begin runs a share.
func (j *joining) begin(w *workReply, s share, incarnation uint64) {
	ctx, stop := context.WithCancelCause(j.ctx)
	p := &part{
		work: w, share: s, key: j.identity.Key(), incarnation: incarnation, log: j.o.Log, ctx: ctx, stop: stop, told: make(chan hostState, 1),
		streams: map[uint16]*stream{}, edges: map[string]*edge{}, wishes: make(chan struct{}, 1), unrest: func() {},
		weights: &j.weights, parts: j.o.Parts, cache: j.o.Cache, programs: j.o.Programs,
	}
	p.link.Store(j.link)
	j.mu.Lock()
	j.parts = append(j.parts, p)
	j.mu.Unlock()
	j.o.Log.Info("components of the run begin here", "components", s.Instances)
	j.running.Go(func() {
		err := p.run()
		select {
		case j.parted <- parted{p, err}:
		case <-j.ctx.Done(): // nobody waits for it
			if err != nil {
				j.o.Log.Warn("what the run had on this host has ended", "why", err)
			}
		}
	})
}

// remove takes a part out of what runs here, and reports whether it was there.
func (j *joining) remove(p *part) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := len(j.parts)
	j.parts = slices.DeleteFunc(j.parts, func(o *part) bool { return o == p })
	return len(j.parts) < before
}

// partFailed is the error of a part of the run that has ended before the run.
func partFailed(err error) *control.Error {
	var known *control.Error
	if errors.As(err, &known) && (known.Code == CodeNoRoom || known.Code == CodeDigest || known.Code == CodeFiles || known.Code == CodeProgram) {
		return known
	}
	e := control.Errorf(CodePart, "what the run has on this host has failed: %v", err)
	e.Help = "the reason says what to fix; the run continues without this host"
	return e
}

// leave tells the owner that this host leaves, and why where nobody has asked it to.
func (j *joining) leave(why *control.Error) {
	incarnation := j.member.Incarnation()
	if incarnation == 0 || !j.own {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(j.ctx), partTime)
	defer stop()
	if _, err := lease(ctx, j.link, j.identity.Key(), verbLeave, leaseRequest{incarnation, why}); err != nil {
		j.o.Log.Warn("the run does not know that this host has left", "why", err)
	}
}

// close ends what runs here, and waits for it and for the question under way, which may have made a connection.
func (j *joining) close() {
	j.running.Wait()
	if j.answerer != nil {
		j.answerer.Close()
	}
	if j.under {
		(<-j.arrived)()
	}
	if j.link != nil {
		j.link.Close()
	}
}

// answers makes what answers the calls of the run's own host, nil where this host does nothing for it.
func (j *joining) answers() *calls.Answerer {
	if j.o.Called == nil {
		return nil
	}
	return calls.NewAnswerer(func(frame []byte) {
		if link := j.way.Load(); link != nil {
			link.Say(cluster.SubjectUp(j.identity.Key(), verbReplied), frame)
		}
	}, j.o.Called)
}

// called takes a frame of a call.
func (j *joining) called(_ string, frame []byte) []byte {
	if j.answerer != nil {
		j.answerer.Hear(frame)
	}
	return nil
}
