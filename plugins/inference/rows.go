package inference

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// bound is what a schema means to the policy.
type bound struct {
	*policy.Binding
	schema *trajectory.Schema // for the policy's own rows
	place  byte               // of the policy, where several act
	some   bool               // some rows may be none of its own
}

// gather turns one message into requests to the policy: its rows at t and, where requested, the last observations of
// environments truncated at t-1. The message becomes the reply.
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
	b, err := c.bind(tr.Schema)
	if err != nil {
		return fmt.Errorf("act on %v: %w", r.Block, err)
	}
	tr.Schema = b.schema
	r.Policy = int(b.place)
	m.Inline, m.PolicyVersion = r.Message().Inline, c.now.number
	tr.Uint64(trajectory.PolicyVersion)[r.T] = c.now.number
	if err := c.addOwn(b, tr, c.request(b, tr, &r), r.T); err != nil || !r.Bootstrap {
		return err
	}
	return c.addBootstrap(b, tr, r.T-1)
}

// request returns the request for all rows at t.
func (c *Inference) request(b *bound, tr trajectory.Trajectory, r *trajectory.ActRequest) policy.Request {
	n := tr.Schema.Rows()
	lo, hi := r.T*n, (r.T+1)*n
	n = len(c.views)
	c.views = b.Row(c.views, tr, r.T)
	request := policy.Request{
		Obs: c.views.From(n), Age: b.Ages(tr, r.T), State: b.State(tr, r.T), Value: tr.Float32(trajectory.Value)[lo:hi],
		Seed: c.h.Run.Seed, FirstEnv: r.FirstEnv, Step: r.Step,
	}
	if r.ValueOnly {
		return request
	}
	n = len(c.views)
	c.views = tr.Masks(c.views, r.T)
	request.Mask = c.views.From(n)
	request.Action = c.rowsOf(tr, trajectory.Action, r.T)
	n = len(c.views)
	c.views = tr.RawActions(c.views, r.T)
	request.Raw = c.views.From(n)
	request.LogProb = tr.Float32(trajectory.LogProb)[lo:hi]
	request.StateOut = b.State(tr, r.T+1)
	return request
}

// bind finds the policy's rows and inputs in the blocks of a schema.
func (c *Inference) bind(s *trajectory.Schema) (*bound, error) {
	if b := c.bound[s]; b != nil {
		return b, nil
	}
	own, err := s.Of(c.config.Policy)
	if err != nil {
		return nil, err
	}
	binding, err := c.network.Bind(own)
	if err != nil {
		return nil, err
	}
	place, _ := s.PolicyPlace(c.config.Policy)
	b := &bound{Binding: binding, schema: own, place: byte(place), some: s.Has(trajectory.Policy) || s.Has(trajectory.Active)}
	c.bound[s] = b
	return b, nil
}

// addOwn adds those rows of a request for row t of a block that are the policy's own, and whose agent acts.
func (c *Inference) addOwn(b *bound, tr trajectory.Trajectory, r policy.Request, t int) error {
	if !b.some {
		return c.add(c.now, r)
	}
	c.own = c.own[:0]
	acts, policies := tr.Acts(t), tr.Policies(t)
	for row := range r.Len() {
		if (acts == nil || acts[row] != 0) && (policies == nil || policies[row] == b.place) {
			c.own = append(c.own, uint32(row))
		}
	}
	if played := tr.PlayedVersions(t); c.drawn && played != nil {
		return c.addByVersion(r, played)
	}
	switch len(c.own) {
	case 0:
		return nil
	case r.Len():
		return c.add(c.now, r)
	}
	return c.add(c.now, c.picked.Pick(&r, c.own))
}

// rowsOf returns row t of every column of a kind.
func (c *Inference) rowsOf(tr trajectory.Trajectory, kind trajectory.Column, t int) []trajectory.Matrix {
	n := len(c.views)
	c.views = tr.Rows(c.views, kind, t)
	return c.views.From(n)
}

// addBootstrap requests the value of final_obs of each environment truncated in row t. What the policy keeps behind that row
// is still that of the episode which has ended: its successor begins from zero, whatever is stored.
func (c *Inference) addBootstrap(b *bound, tr trajectory.Trajectory, t int) error {
	truncated, policies := tr.Row(trajectory.Truncated, t).Data, tr.Policies(t)
	n := len(c.views)
	c.views = b.Final(c.views, tr, t)
	last := policy.Request{Obs: c.views.From(n), Age: c.olderBy1(b.Ages(tr, t)), State: b.State(tr, t+1),
		Value: tr.Float32(trajectory.Bootstrap)[t*len(truncated):]}
	for env, flag := range truncated {
		if flag == 0 || policies != nil && policies[env] != b.place {
			continue
		}
		if err := c.add(c.now, last.Slice(env, env+1, &c.views)); err != nil {
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

// add puts a request into the batch of a version, running the batch whenever it is full.
func (c *Inference) add(v *version, r policy.Request) error {
	for {
		room := c.config.MaxRows - v.rows
		if r.Len() <= room {
			v.requests = append(v.requests, r)
			v.rows += r.Len()
			return nil
		}
		if room > 0 {
			v.requests = append(v.requests, r.Slice(0, room, &c.views))
			v.rows += room
			r = r.Slice(room, r.Len(), &c.views)
		}
		if err := c.run(v); err != nil {
			return err
		}
	}
}

// run acts on the batch of a version.
func (c *Inference) run(v *version) error {
	if v.rows == 0 {
		return nil
	}
	err := v.actor.Act(v.requests)
	if err != nil {
		err = blame(v.requests, err)
	}
	c.batchRows.Observe(float64(v.rows))
	v.requests, v.rows = v.requests[:0], 0
	return err
}

// blame names the environment whose row the policy cannot act on.
func blame(requests []policy.Request, err error) error {
	var row *policy.RowError
	if !errors.As(err, &row) || row.Request >= len(requests) {
		return err
	}
	r := &requests[row.Request]
	return fmt.Errorf("environment %d at env step %d: %w", r.Env(row.Row), r.Step%trajectory.LifeSteps, row.Err)
}
