package rlhost

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/rlhost/rlhost/pipeline/session"
	"github.com/rlhost/rlhost/sdk/component"
)

// samplerName is the name and the kind of the component that Sample adds to a pipeline.
const samplerName = "sampler"

// Sample runs a pipeline, with a learner or without, and yields the trajectories of one of its signals, such as rollout.trajectories, one
// after the other. A block and its columns, of [rows, environments] such as obs, action and reward, are valid until the next one; meanwhile the
// pipeline fills others, until all are full. The iteration ends with the run, by its stop rule, and the run ends with the iteration. An error
// is the last that is yielded, without a block: of the pipeline, of the run, or the cause of the end of ctx.
func Sample(ctx context.Context, signal string, o Options) iter.Seq2[component.Block, error] {
	return func(yield func(component.Block, error) bool) {
		running, stop := context.WithCancel(ctx)
		t := &sampler{ctx: running, blocks: make(chan component.Block), done: make(chan struct{})}
		s, err := o.sampling(running, signal, t)
		if err != nil {
			stop()
			yield(nil, err)
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, err = s.Run(running)
			err = errors.Join(err, s.Close(), context.Cause(ctx))
		}()
		defer func() { // also where the loop's body panics
			stop()
			close(t.done)
			<-ended
		}()
		for {
			select {
			case b := <-t.blocks:
				if !yield(b, nil) {
					return
				}
				t.done <- struct{}{}
			case <-ended:
				if err != nil {
					yield(nil, err)
				}
				return
			}
		}
	}
}

// sampling begins the run of a pipeline with a sampler at a signal.
func (o *Options) sampling(ctx context.Context, signal string, t *sampler) (*session.Session, error) {
	_, src, err := o.source()
	if err != nil {
		return nil, err
	}
	with := *o
	with.Text = string(src) + fmt.Sprintf("\n[component.%s]\nkind = %[1]q\n[[wire]]\nsignal = %q\nslot = \"%[1]s.on_trajectories\"\n", samplerName, signal)
	with.Components = maps.Clone(o.Components)
	if with.Components == nil {
		with.Components = map[string]func() component.Component{}
	}
	with.Components[samplerName] = t.component
	s, err := with.training()
	if err != nil {
		return nil, err
	}
	s.WithoutLearner = true
	return session.Begin(ctx, s)
}

// sampler is a component that waits at each trajectory until the iteration wants the next one.
type sampler struct {
	ctx    context.Context // of the run
	blocks chan component.Block
	done   chan struct{}
}

func (t *sampler) component() component.Component {
	return &component.Declared{Slots: []component.Input{{Name: "on_trajectories", Payload: "trajectory", Doc: "a full block", Handle: t.take}}}
}

func (t *sampler) take(m *component.Message) error {
	select {
	case t.blocks <- m.Block:
		<-t.done
	case <-t.ctx.Done():
	}
	return nil
}
