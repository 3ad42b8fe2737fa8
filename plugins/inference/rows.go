package inference

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// gather turns one message into requests to the policy: the rows at t and, where requested, the last observations of
// environments truncated at t-1.
func (c *Inference) gather(m *hostabi.Message) error {
	r := trajectory.ActRequestOf(m)
	tr, err := trajectory.Borrowed(c.h.Arenas, r.Block)
	if err != nil {
		return fmt.Errorf("act on %v row %d: %w", r.Block, r.T, err)
	}
	shape := tr.Schema.Shape
	if r.T > shape.Steps || r.T == shape.Steps && !r.ValueOnly || r.T == 0 && r.Bootstrap {
		return fmt.Errorf("act on %v: no row %d to act on in blocks of %d steps", r.Block, r.T, shape.Steps)
	}
	tr.Uint64(trajectory.PolicyVersion)[r.T] = c.version
	lo, hi := r.T*shape.Envs, (r.T+1)*shape.Envs
	request := policy.Request{
		Obs: tr.Row(trajectory.Obs, r.T), Value: tr.Float32(trajectory.Value)[lo:hi],
		Seed: c.h.Run.Seed, FirstEnv: r.FirstEnv, Step: r.Step,
	}
	if tr.Schema.Has(trajectory.Mask) {
		request.Mask = tr.Row(trajectory.Mask, r.T)
	}
	if !r.ValueOnly {
		request.Action = tr.Int32(trajectory.Action)[lo:hi]
		request.LogProb = tr.Float32(trajectory.LogProb)[lo:hi]
	}
	if err := c.add(request); err != nil || !r.Bootstrap {
		return err
	}
	return c.addBootstrap(tr, r.T-1)
}

// addBootstrap requests the value of final_obs of each environment truncated in row t.
func (c *Inference) addBootstrap(tr trajectory.Trajectory, t int) error {
	truncated := tr.Row(trajectory.Truncated, t).Data
	final, value := tr.Row(trajectory.FinalObs, 0), tr.Float32(trajectory.Bootstrap)
	for env, flag := range truncated {
		if flag == 0 {
			continue
		}
		at := t*len(truncated) + env
		if err := c.add(policy.Request{Obs: final.Slice(env, env+1), Value: value[at : at+1]}); err != nil {
			return err
		}
	}
	return nil
}

// add puts a request into the batch, running the batch whenever it is full.
func (c *Inference) add(r policy.Request) error {
	for {
		room := c.config.MaxRows - c.rows
		if r.Obs.Rows <= room {
			c.requests = append(c.requests, r)
			c.rows += r.Obs.Rows
			return nil
		}
		if room > 0 {
			c.requests = append(c.requests, slice(r, 0, room))
			c.rows += room
			r = slice(r, room, r.Obs.Rows)
		}
		if err := c.run(); err != nil {
			return err
		}
	}
}

// slice returns the rows lo to hi of a request.
func slice(r policy.Request, lo, hi int) policy.Request {
	r.Obs = r.Obs.Slice(lo, hi)
	if r.Mask.Rows > 0 {
		r.Mask = r.Mask.Slice(lo, hi)
	}
	if r.Action != nil {
		r.Action, r.LogProb = r.Action[lo:hi], r.LogProb[lo:hi]
	}
	r.Value = r.Value[lo:hi]
	r.FirstEnv += uint32(lo)
	return r
}

// run acts on the batch.
func (c *Inference) run() error {
	if c.rows == 0 {
		return nil
	}
	err := c.actor.Act(c.requests)
	if err != nil {
		err = c.blame(err)
	}
	c.batchRows.Observe(float64(c.rows))
	c.requests, c.rows = c.requests[:0], 0
	return err
}

// blame names the environment whose row the policy cannot act on.
func (c *Inference) blame(err error) error {
	var row *policy.RowError
	if !errors.As(err, &row) || row.Request >= len(c.requests) {
		return err
	}
	r := &c.requests[row.Request]
	return fmt.Errorf("environment %d at env step %d: %w", r.FirstEnv+uint32(row.Row), r.Step%trajectory.LifeSteps, row.Err)
}
