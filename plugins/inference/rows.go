package inference

import (
	"errors"
	"fmt"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// bound is a schema with its meaning for the policy.
type bound struct {
	*policy.Binding
	schema *trajectory.Schema // for the policy's own rows
	place  byte               // of the policy, where several act
	some   bool               // some rows may belong to other policies
}

// gather turns one message into requests to the policy: its rows at t and, where requested, the last observations of
// environments truncated at t-1. The message becomes the reply.
func (inf *Inference) gather(m *hostabi.Message) error {
	r := trajectory.ActRequestOf(m)
	tr, err := trajectory.Borrowed(inf.h.Arenas, r.Block)
	if err != nil {
		return fmt.Errorf("act on %v row %d: %w", r.Block, r.T, err)
	}
	shape := tr.Schema.Shape
	if r.T > shape.Steps || r.T == shape.Steps && !r.ValueOnly || r.T == 0 && r.Bootstrap {
		return fmt.Errorf("act on %v: no row %d to act on in blocks of %d steps", r.Block, r.T, shape.Steps)
	}
	b, err := inf.bind(tr.Schema)
	if err != nil {
		return fmt.Errorf("act on %v: %w", r.Block, err)
	}
	tr.Schema = b.schema
	r.Policy = int(b.place)
	m.Inline, m.PolicyVersion = r.Message().Inline, inf.now.number
	tr.Uint64(trajectory.PolicyVersion)[r.T] = inf.now.number
	if err := inf.addOwn(b, tr, inf.request(b, tr, &r), r.T); err != nil || !r.Bootstrap {
		return err
	}
	return inf.addBootstrap(b, tr, r.T-1)
}

// request returns the request for all rows at t.
func (inf *Inference) request(b *bound, tr trajectory.Trajectory, r *trajectory.ActRequest) policy.Request {
	n := tr.Schema.Rows()
	lo, hi := r.T*n, (r.T+1)*n
	n = len(inf.views)
	inf.views = b.Row(inf.views, tr, r.T)
	request := policy.Request{
		Obs: inf.views.From(n), Age: b.Ages(tr, r.T), State: b.State(tr, r.T), Value: tr.Float32(trajectory.Value)[lo:hi],
		Seed: inf.h.Run.Seed, FirstEnv: r.FirstEnv, Step: r.Step,
	}
	if r.ValueOnly {
		return request
	}
	n = len(inf.views)
	inf.views = tr.Masks(inf.views, r.T)
	request.Mask = inf.views.From(n)
	request.Action = inf.rowsOf(tr, trajectory.Action, r.T)
	n = len(inf.views)
	inf.views = tr.RawActions(inf.views, r.T)
	request.Raw = inf.views.From(n)
	request.LogProb = tr.Float32(trajectory.LogProb)[lo:hi]
	request.StateOut = b.State(tr, r.T+1)
	return request
}

// bind finds the policy's rows and inputs in the blocks of a schema.
func (inf *Inference) bind(s *trajectory.Schema) (*bound, error) {
	if b := inf.bound[s]; b != nil {
		return b, nil
	}
	own, err := s.Of(inf.config.Policy)
	if err != nil {
		return nil, err
	}
	binding, err := inf.network.Bind(own)
	if err != nil {
		return nil, err
	}
	place, _ := s.PolicyPlace(inf.config.Policy)
	b := &bound{Binding: binding, schema: own, place: byte(place), some: s.Has(trajectory.Policy) || s.Has(trajectory.Active)}
	inf.bound[s] = b
	return b, nil
}

// addOwn adds the policy's own rows of a request for row t of a block, where the agent acts.
func (inf *Inference) addOwn(b *bound, tr trajectory.Trajectory, r policy.Request, t int) error {
	if !b.some {
		return inf.add(inf.now, r)
	}
	inf.own = inf.own[:0]
	acts, policies := tr.Acts(t), tr.Policies(t)
	for row := range r.Len() {
		if (acts == nil || acts[row] != 0) && (policies == nil || policies[row] == b.place) {
			inf.own = append(inf.own, uint32(row))
		}
	}
	if played := tr.PlayedVersions(t); inf.drawn && played != nil {
		return inf.addByVersion(r, played)
	}
	switch len(inf.own) {
	case 0:
		return nil
	case r.Len():
		return inf.add(inf.now, r)
	}
	return inf.add(inf.now, inf.picked.Pick(&r, inf.own))
}

// rowsOf returns row t of every column of a kind.
func (inf *Inference) rowsOf(tr trajectory.Trajectory, kind trajectory.Column, t int) []trajectory.Matrix {
	n := len(inf.views)
	inf.views = tr.Rows(inf.views, kind, t)
	return inf.views.From(n)
}

// addBootstrap requests the value of final_obs of each environment truncated in row t. The policy's state after that row
// still belongs to the ended episode: the next episode begins from zero, whatever is stored.
func (inf *Inference) addBootstrap(b *bound, tr trajectory.Trajectory, t int) error {
	truncated, policies := tr.Row(trajectory.Truncated, t).Data, tr.Policies(t)
	n := len(inf.views)
	inf.views = b.Final(inf.views, tr, t)
	last := policy.Request{Obs: inf.views.From(n), Age: inf.olderBy1(b.Ages(tr, t)), State: b.State(tr, t+1),
		Value: tr.Float32(trajectory.Bootstrap)[t*len(truncated):]}
	for env, flag := range truncated {
		if flag == 0 || policies != nil && policies[env] != b.place {
			continue
		}
		if err := inf.add(inf.now, last.Slice(env, env+1, &inf.views)); err != nil {
			return err
		}
	}
	return nil
}

// olderBy1 returns the ages of the rows after rows of the given ages.
func (inf *Inference) olderBy1(ages []byte) []byte {
	if ages == nil {
		return nil
	}
	n := len(inf.ages)
	for _, age := range ages {
		inf.ages = append(inf.ages, trajectory.Older(age))
	}
	return inf.ages[n:]
}

// add puts a request into the batch of a version, running the batch whenever it is full.
func (inf *Inference) add(v *version, r policy.Request) error {
	for {
		room := inf.config.MaxRows - v.rows
		if r.Len() <= room {
			v.requests = append(v.requests, r)
			v.rows += r.Len()
			return nil
		}
		if room > 0 {
			v.requests = append(v.requests, r.Slice(0, room, &inf.views))
			v.rows += room
			r = r.Slice(room, r.Len(), &inf.views)
		}
		if err := inf.run(v); err != nil {
			return err
		}
	}
}

// run acts on the batch of a version.
func (inf *Inference) run(v *version) error {
	if v.rows == 0 {
		return nil
	}
	err := v.actor.Act(v.requests)
	if err != nil {
		err = blame(v.requests, err)
	}
	inf.batchRows.Observe(float64(v.rows))
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
