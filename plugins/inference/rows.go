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
	n := tr.Schema.Rows()
	lo, hi := r.T*n, (r.T+1)*n
	bound, err := c.bind(tr.Schema)
	if err != nil {
		return fmt.Errorf("act on %v: %w", r.Block, err)
	}
	n = len(c.views)
	c.views = bound.Row(c.views, tr, r.T)
	request := policy.Request{
		Obs: c.views.From(n), Age: bound.Ages(tr, r.T), State: bound.State(tr, r.T), Value: tr.Float32(trajectory.Value)[lo:hi],
		Seed: c.h.Run.Seed, FirstEnv: r.FirstEnv, Step: r.Step,
	}
	if !r.ValueOnly {
		n := len(c.views)
		c.views = tr.Masks(c.views, r.T)
		request.Mask = c.views.From(n)
		request.Action = c.rowsOf(tr, trajectory.Action, r.T)
		n = len(c.views)
		c.views = tr.RawActions(c.views, r.T)
		request.Raw = c.views.From(n)
		request.LogProb = tr.Float32(trajectory.LogProb)[lo:hi]
		request.StateOut = bound.State(tr, r.T+1)
	}
	if err := c.add(request); err != nil || !r.Bootstrap {
		return err
	}
	return c.addBootstrap(bound, tr, r.T-1)
}

// bind finds the policy's inputs in the blocks of a schema.
func (c *Inference) bind(s *trajectory.Schema) (*policy.Binding, error) {
	if b := c.bound[s]; b != nil {
		return b, nil
	}
	b, err := c.network.Bind(s)
	if err == nil {
		c.bound[s] = b
	}
	return b, err
}

// rowsOf returns row t of every column of a kind.
func (c *Inference) rowsOf(tr trajectory.Trajectory, kind trajectory.Column, t int) []trajectory.Matrix {
	n := len(c.views)
	c.views = tr.Rows(c.views, kind, t)
	return c.views.From(n)
}

// addBootstrap requests the value of final_obs of each environment truncated in row t. What the policy keeps behind that row
// is still that of the episode which has ended: its successor begins from zero, whatever is stored.
func (c *Inference) addBootstrap(bound *policy.Binding, tr trajectory.Trajectory, t int) error {
	truncated := tr.Row(trajectory.Truncated, t).Data
	n := len(c.views)
	c.views = bound.Final(c.views, tr, t)
	last := policy.Request{Obs: c.views.From(n), Age: c.olderBy1(bound.Ages(tr, t)), State: bound.State(tr, t+1),
		Value: tr.Float32(trajectory.Bootstrap)[t*len(truncated):]}
	for env, flag := range truncated {
		if flag == 0 {
			continue
		}
		if err := c.add(last.Slice(env, env+1, &c.views)); err != nil {
			return err
		}
	}
	return nil
}

// olderBy1 returns the ages of the rows after those of the given ages.
func (c *Inference) olderBy1(ages []byte) []byte {
	if ages == nil {
		return nil
	}
	n := len(c.ages)
	for _, age := range ages {
		c.ages = append(c.ages, trajectory.Older(age))
	}
	return c.ages[n:]
}

// add puts a request into the batch, running the batch whenever it is full.
func (c *Inference) add(r policy.Request) error {
	for {
		room := c.config.MaxRows - c.rows
		if r.Len() <= room {
			c.requests = append(c.requests, r)
			c.rows += r.Len()
			return nil
		}
		if room > 0 {
			c.requests = append(c.requests, r.Slice(0, room, &c.views))
			c.rows += room
			r = r.Slice(room, r.Len(), &c.views)
		}
		if err := c.run(); err != nil {
			return err
		}
	}
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
