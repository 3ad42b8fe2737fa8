package session

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// groupTime is how long a request to a group may take where it does not say.
const groupTime = 30 * time.Second

// runVerbs answers the commands for the run as a whole.
type runVerbs struct{ job *job }

// pause answers VerbPause.
func (v runVerbs) pause(ctx context.Context, q control.GroupRequest, _ control.Notice) (*control.GroupReply, error) {
	return v.group(ctx, q, "pause", v.job.Pipeline.Pause)
}

// resume answers VerbUnpause.
func (v runVerbs) resume(ctx context.Context, q control.GroupRequest, _ control.Notice) (*control.GroupReply, error) {
	return v.group(ctx, q, "unpause", v.job.Pipeline.Resume)
}

// groupAsk is Pipeline.Pause or Pipeline.Resume.
type groupAsk func(ctx context.Context, patterns []string) ([]control.Answer, error)

// group asks the components that the patterns name.
func (v runVerbs) group(ctx context.Context, q control.GroupRequest, what string, ask groupAsk) (*control.GroupReply, error) {
	limited, cancel, err := v.limit(ctx, q.Deadline)
	if err != nil {
		return nil, err
	}
	defer cancel()
	answers, err := ask(limited, q.Patterns)
	if err != nil {
		return nil, v.job.asError(ctx, err)
	}
	v.job.history.note(runs.Change{Step: runs.StepNoted, Number: v.job.history.nextNumber(), What: what, Differences: q.Patterns}, askerOf(ctx))
	return &control.GroupReply{Answers: answers}, nil
}

// limit gives a request to a group its deadline, in seconds.
func (v runVerbs) limit(ctx context.Context, seconds float64) (context.Context, context.CancelFunc, error) {
	if !(seconds >= 0 && seconds < math.MaxInt32) {
		return nil, nil, bad("a deadline of %g s: want 0 or more", seconds)
	}
	if v.job.over() {
		return nil, nil, control.Errorf(control.CodeEnded, "the run has ended")
	}
	deadline := time.Duration(seconds * float64(time.Second))
	if deadline == 0 {
		deadline = groupTime
	}
	limited, cancel := context.WithTimeout(ctx, deadline)
	return limited, cancel, nil
}

// request answers VerbRequest.
func (v runVerbs) request(ctx context.Context, q control.AskRequest, _ control.Notice) (*control.AskReply, error) {
	limited, cancel, err := v.limit(ctx, q.Deadline)
	if err != nil {
		return nil, err
	}
	defer cancel()
	reply, err := v.job.Pipeline.Ask(limited, &q)
	if err != nil {
		return nil, v.job.asError(ctx, err)
	}
	return reply, nil
}

// checkpoint answers VerbCheckpoint.
func (v runVerbs) checkpoint(ctx context.Context, _ control.CheckpointRequest, notice control.Notice) (*control.CheckpointReply, error) {
	if v.job.over() {
		return nil, control.Errorf(control.CodeEnded, "the run has ended")
	}
	if !Learns(v.job.Pipeline.Graph()) {
		return nil, bad("nothing is learned in this run, so there is nothing to save")
	}
	say := sayTo(notice)
	say("waiting for the next dataset boundary")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go v.remind(ctx, say)
	reply, err := v.job.Checkpoint(ctx)
	if err != nil {
		return nil, v.job.asError(ctx, err)
	}
	return &reply, nil
}

// remind tells a client that waits for a boundary why none comes.
func (v runVerbs) remind(ctx context.Context, say say) {
	const patience = 5 * time.Second
	select {
	case <-time.After(patience):
		for _, s := range v.job.Pipeline.Status().Components {
			if s.State == control.Paused {
				say("%s is paused: no boundary comes before rlhost unpause", s.Name)
				return
			}
		}
	case <-ctx.Done():
	}
}

// stop answers VerbStop when the run has ended.
func (v runVerbs) stop(ctx context.Context, q control.StopRequest, notice control.Notice) (*control.StopReply, error) {
	if v.job.over() {
		return nil, control.Errorf(control.CodeEnded, "the run has ended already")
	}
	what := "stop"
	if q.Now {
		what = "stop at once"
	}
	v.job.history.note(runs.Change{Step: runs.StepNoted, Number: v.job.history.nextNumber(), What: what}, askerOf(ctx))
	v.job.log.Info("asked to "+what, "uid", askerOf(ctx).uid)
	if !q.Now && Learns(v.job.Pipeline.Graph()) {
		sayTo(notice)("saving at the next dataset boundary")
	}
	v.job.Stop(q.Now)
	select {
	case <-v.job.ended:
	case <-ctx.Done():
		if !v.job.over() {
			return nil, errors.New("given up waiting; the run still ends at its next dataset boundary")
		}
	}
	return &control.StopReply{Checkpoint: v.job.LastCheckpoint()}, nil
}

// logs answers VerbLogs.
func (v runVerbs) logs(ctx context.Context, q control.LogsRequest, notice control.Notice) (*control.LogsReply, error) {
	if v.job.Records == nil {
		return nil, control.Errorf(control.CodeFailed, "this run keeps no log")
	}
	if _, err := control.ParsePattern(q.Component); q.Component != "" && err != nil {
		return nil, bad("%v", err)
	}
	reply := &control.LogsReply{}
	follower := v.job.Records.Follow() // before the past is read, so that nothing falls between
	defer follower.Close()
	show := func(record []byte) bool {
		if !OfComponent(q.Component, record) {
			return true
		}
		reply.Records++
		return notice(rawRecord(record)) == nil
	}
	if err := v.job.Run.ReadLog(show); err != nil || !q.Follow {
		return reply, err
	}
	for {
		select {
		case record, ok := <-follower.Records():
			if !ok || !show(record) {
				return reply, nil
			}
		case <-ctx.Done():
			return reply, nil
		}
	}
}
