package member

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/members"
)

// Times without an answer of the owner.
const (
	grace   = 10 * time.Second // then a host says that it waits
	abandon = 10 * time.Minute // then it ends
)

// JoinOptions are what a host joins with.
type JoinOptions struct {
	Token   cluster.Token
	Name    string // proposed
	Version string // of rlhost
	Cores   int
	Memory  uint64 // bytes
	Log     *slog.Logger
	Joined  func(name string) // called whenever it has joined; may be nil
}

// Join makes this machine a host of a run until ctx ends, when it leaves, or the run does; both are nil. An error says why it cannot join, or that
// the run has been silent for too long.
func Join(ctx context.Context, o JoinOptions) error {
	identity, err := cluster.NewIdentity()
	if err != nil {
		return err
	}
	j := &joining{o: o, identity: identity, begun: time.Now(), arrived: make(chan func(), 1), over: make(chan struct{}, 1)}
	ctx, stop := context.WithCancelCause(ctx)
	j.ctx = ctx
	defer j.close()
	defer stop(nil)
	j.member = members.NewMember(0, j, members.MemberOptions{
		Request: members.Request{Key: identity.Key(), Attempt: 1, Name: o.Name, Version: o.Version, Cores: o.Cores, Memory: o.Memory},
		Every:   renewEvery, Grace: grace, Abandon: abandon,
	})
	return j.run()
}

// joining is one call of Join. All but what a question does belongs to the goroutine of run.
type joining struct {
	o        JoinOptions
	ctx      context.Context
	identity *cluster.Identity
	member   *members.Member
	begun    time.Time

	arrived chan func()   // what the answer to the question under way means
	under   bool          // a question is
	over    chan struct{} // the owner has told that the run is over
	link    *cluster.Link // with the token's key or, once admitted, with the host's own
	own     bool          // the latter
	joined  uint64        // incarnation that has been told
	waits   bool          // it has been told that the owner is silent
	err     error         // why it ends
}

func (j *joining) now() time.Duration { return time.Since(j.begun) }

func (j *joining) run() error {
	for j.err == nil {
		timer := time.NewTimer(max(j.member.Deadline()-j.now(), time.Millisecond))
		select {
		case <-j.ctx.Done():
			j.leave()
			return nil
		case <-j.over:
			j.o.Log.Info("the run is over")
			return nil
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
			if link, err = cluster.Connect(ctx, cluster.LinkOptions{Token: j.o.Token}); err != nil {
				return func() { j.failed(err) }
			}
		}
		reply := askReply{}
		text, err := link.Ask(ctx, cluster.SubjectAsk, encode(r))
		if err == nil {
			err = json.Unmarshal(text, &reply)
		}
		return func() {
			j.use(link, false)
			switch {
			case err != nil: // it is asked again
			case reply.Refused != nil:
				j.err = reply.Refused
			case reply.Grant != nil:
				j.member.Granted(j.now(), *reply.Grant)
			}
		}
	})
}

// failed takes the error of a connection: the first attempt tells the user, later ones are repeated.
func (j *joining) failed(err error) {
	if j.joined == 0 && j.ctx.Err() == nil || errors.Is(err, cluster.ErrCertificate) {
		j.err = unreachable(&j.o.Token, err)
	}
}

// Connect is members.MemberPort's.
func (j *joining) Connect(g members.Grant) {
	j.ask(func(ctx context.Context) func() {
		link, err := cluster.Connect(ctx, cluster.LinkOptions{Token: j.o.Token, Identity: j.identity})
		if err == nil {
			err = link.Answer(cluster.SubjectAll, j.told)
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
		reply, err := lease(ctx, link, j.identity.Key(), verbRenew, incarnation)
		return func() {
			switch {
			case err != nil && link.Over():
				j.member.Refused(j.now(), incarnation)
			case err != nil: // it is renewed again
			case reply.Stranger:
				j.member.Stranger(j.now(), incarnation)
			default:
				j.member.Renewed(j.now(), incarnation)
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

func lease(ctx context.Context, link *cluster.Link, key, verb string, incarnation uint64) (reply leaseReply, err error) {
	text, err := link.Ask(ctx, cluster.SubjectUp(key, verb), encode(leaseRequest{incarnation}))
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
}

// leave tells the owner that this host leaves.
func (j *joining) leave() {
	incarnation := j.member.Incarnation()
	if incarnation == 0 || !j.own {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(j.ctx), partTime)
	defer stop()
	if _, err := lease(ctx, j.link, j.identity.Key(), verbLeave, incarnation); err != nil {
		j.o.Log.Warn("the run does not know that this host has left", "why", err)
	}
}

// close waits for the question under way, which may have made a connection.
func (j *joining) close() {
	if j.under {
		(<-j.arrived)()
	}
	if j.link != nil {
		j.link.Close()
	}
}
