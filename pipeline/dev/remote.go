package dev

import (
	"context"
	"errors"
	"time"

	"github.com/rlhost/rlhost/core/control"
)

// remote is the run, over its control socket.
type remote struct {
	dial   func(ctx context.Context) (*control.Client, error)
	client *control.Client
	last   *control.StatusReply // the newest
	ended  bool
}

// Times of a request that comes while another change is under way.
const (
	busyEvery   = 20 * time.Millisecond
	longestBusy = time.Minute
)

// do makes a request, and waits for a change that is under way. It dials where there is no connection: the end of a context ends that too.
func (r *remote) do(ctx context.Context, verb control.Verb, request, reply any) error {
	ctx, cancel := context.WithTimeout(ctx, longestBusy)
	defer cancel()
	tick := time.NewTicker(busyEvery)
	defer tick.Stop()
	for {
		err := r.once(ctx, verb, request, reply)
		var e *control.Error
		if !errors.As(err, &e) || e.Code != control.CodeBusy {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

func (r *remote) once(ctx context.Context, verb control.Verb, request, reply any) (err error) {
	if r.client == nil {
		if r.client, err = r.dial(ctx); err != nil {
			r.client = nil
			return r.note(ctx, err)
		}
	}
	if err = r.client.Do(ctx, verb, request, reply, nil); ctx.Err() != nil {
		r.close() // the request was cut
	}
	return r.note(ctx, err)
}

// note notes that the run has ended.
func (r *remote) note(ctx context.Context, err error) error {
	var e *control.Error
	if ctx.Err() == nil && errors.As(err, &e) && (e.Code == control.CodeEnded || e.Code == control.CodeNoJob) {
		r.ended = true
	}
	return err
}

// status asks for the status of the run.
func (r *remote) status(ctx context.Context) (*control.StatusReply, error) {
	var s control.StatusReply
	if err := r.do(ctx, control.VerbStatus, control.StatusRequest{}, &s); err != nil {
		return nil, err
	}
	r.last = &s
	return &s, nil
}

// close ends the connection.
func (r *remote) close() {
	if r.client != nil {
		_ = r.client.Close() // it was for requests only
		r.client = nil
	}
}
