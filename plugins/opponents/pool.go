package opponents

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/hostabi"
)

// Metrics of a pool: how many versions it keeps, and the published one.
const (
	gaugeKept  = "opponents/versions"
	gaugeDrawn = "opponents/policy_version"
	countDrawn = "opponents/draws"
)

// Pool keeps versions of a learned policy and publishes one of them at a time.
type Pool struct {
	config config
	h      *component.Host
	publisher
	key      uint32    // of draws, made of the policy's name
	learned  string    // the policy whose versions these are, empty where that is not known
	kept     []version // the first one, then the newest ones, ascending; none before the first is received
	drawn    version   // that is published; perhaps no longer among the kept ones
	free     [][]byte  // memory of dropped versions
	newest   uint64    // version received last
	received uint64    // versions
	draws    uint64
	count    *stat.Counter
	kepts    *stat.Gauge
	playing  *stat.Gauge
	held     []arena.Lease // of trajectories, in synchronous mode, until the next version is received
}

// version is one policy version, as the format of the weights lays it out.
type version struct {
	number  uint64
	weights []byte
}

var _ component.Component = (*Pool)(nil)

// New returns an unconfigured pool.
func New() component.Component { return &Pool{} }

// Manifest lists the ports.
func (p *Pool) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{weightsPort("the version that was drawn")},
		Slots: []component.Port{
			{Name: "on_weights", Payload: component.PayloadWeights, Doc: "a new version of the learned policy"},
			{Name: "on_trajectories", Payload: component.PayloadTrajectory,
				Doc: "in synchronous mode, a full block: its rollout does not go on before the pool has published"},
		},
	}
}

// Configure reads the component's table.
func (p *Pool) Configure(decode func(into any) error) error {
	p.config = defaults()
	if err := decode(&p.config); err != nil {
		return err
	}
	return p.config.validate()
}

// Start posts the publication of the version that a restored run was at.
func (p *Pool) Start(h *component.Host) error {
	p.h = h
	h.Slot("on_weights", p.onWeights)
	h.Slot("on_trajectories", p.onTrajectory)
	d, err := policy.Of(h, p.config.Policy)
	if err != nil {
		return err
	}
	if err := d.Network.Validate(); err != nil {
		return err
	}
	p.key = trajectory.PolicyID(p.config.Policy)
	if h.Tables != nil {
		p.learned = h.Tables().Policies[p.config.Policy].Of
	}
	p.count, p.kepts, p.playing = h.Stats.Counter(countDrawn), h.Stats.Gauge(gaugeKept), h.Stats.Gauge(gaugeDrawn)
	if err := p.start(h, &d.Network); err != nil {
		return err
	}
	h.Receiver.Control(loop.Func(p.first), hostabi.Message{})
	return nil
}

// first publishes the restored version, if there is one: receivers have none yet.
func (p *Pool) first(*hostabi.Message) {
	if p.drawn.weights == nil || p.published != 0 {
		return
	}
	if err := p.publishDrawn(); err != nil {
		p.h.Fail(err)
	}
}

// onTrajectory claims a block until the next version is received, so that in synchronous mode the next rows are acted on
// with the version drawn then, wherever the policy's inference runs.
func (p *Pool) onTrajectory(m *hostabi.Message) {
	if !p.h.Run.Synchronous {
		return
	}
	tr, lease, err := trajectory.Lease(p.h.Arenas, m.Handle)
	switch {
	case err != nil:
	case p.late(tr):
		err = lease.Release()
	default:
		p.held = append(p.held, lease)
	}
	if err != nil {
		p.h.Fail(fmt.Errorf("trajectory %v: %w", m.Handle, err))
	}
}

// late reports whether the version that is learned from a trajectory has been received already: a rollout in another process
// sends while this one's loop runs, so that the learner may be faster than the message. There will be no next version while the
// block is claimed.
func (p *Pool) late(tr trajectory.Trajectory) bool {
	if tr.Schema.Shape.Policies == "" || p.received == 0 {
		return false
	}
	own, err := tr.Schema.Of(p.learned)
	if err != nil {
		return false // it does not act there
	}
	tr.Schema = own
	return tr.Uint64(trajectory.PolicyVersion)[own.Shape.Steps-1] < p.newest
}

// onWeights receives a version. Its block is claimed while the slot runs.
func (p *Pool) onWeights(m *hostabi.Message) {
	if err := p.receive(m); err != nil {
		p.h.Fail(fmt.Errorf("weights %v: %w", m.Handle, err))
	}
	if err := p.release(); err != nil {
		p.h.Fail(err)
	}
}

// release releases the trajectories that were claimed.
func (p *Pool) release() error {
	var errs []error
	for i := range p.held {
		errs = append(errs, p.held[i].Release())
	}
	p.held = p.held[:0]
	return errors.Join(errs...)
}

// receive keeps a version if it is due, and draws if that is. A version that comes again, as after a resume, is ignored.
func (p *Pool) receive(m *hostabi.Message) error {
	if p.received > 0 && m.PolicyVersion == p.newest {
		return nil
	}
	due := len(p.kept) == 0 || m.PolicyVersion >= p.kept[len(p.kept)-1].number+p.config.EveryVersions
	if due {
		if err := p.take(m.Handle); err != nil {
			return err
		}
	}
	p.newest = m.PolicyVersion
	p.received++
	if (p.received-1)%p.config.DrawEveryVersions != 0 {
		return nil
	}
	return p.draw()
}

// take copies a version out of its block.
func (p *Pool) take(h hostabi.Handle) error {
	lease, err := p.h.Arenas.Lease(h)
	if err != nil {
		return err
	}
	defer lease.Release()
	w, err := p.format.Read(lease.Bytes())
	if err != nil {
		return err
	}
	p.keep(version{w.Version, append(p.memory(), lease.Bytes()[:p.format.Bytes()]...)})
	return nil
}

// memory returns empty memory for a version.
func (p *Pool) memory() []byte {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b[:0]
	}
	return make([]byte, 0, p.format.Bytes())
}

// keep adds a version and drops the oldest but the first where there are too many.
func (p *Pool) keep(v version) {
	p.kept = append(p.kept, v)
	p.trim()
}

// trim drops the oldest versions but the first where there are too many.
func (p *Pool) trim() {
	for len(p.kept) > 1+p.config.Keep {
		gone := p.kept[1]
		p.kept = slices.Delete(p.kept, 1, 2)
		if gone.number != p.drawn.number {
			p.free = append(p.free, gone.weights)
		}
	}
	p.kepts.Set(float64(len(p.kept)))
}

// draw publishes one of the kept versions, unless it is published already.
func (p *Pool) draw() error {
	if !p.choose() {
		return nil
	}
	return p.publishDrawn()
}

// choose draws one of the kept versions and reports whether it is another one than before. The choice depends on the run's
// seed, the policy's name, the number of draws before and the kept versions alone.
func (p *Pool) choose() (another bool) {
	next, last := p.kept[p.pick()], p.drawn
	p.draws++
	p.count.Inc()
	if last.weights != nil && next.number == last.number {
		return false
	}
	if last.weights != nil && !slices.ContainsFunc(p.kept, func(v version) bool { return v.number == last.number }) {
		p.free = append(p.free, last.weights)
	}
	p.drawn = next
	return true
}

// pick draws the place of a kept version.
func (p *Pool) pick() int {
	seed, last := env.OpponentStream.Seed(p.h.Run.Seed), len(p.kept)-1
	if float64(policy.Uniform(seed, p.key, p.draws, 0)) < p.config.Newest {
		return last
	}
	return min(int(float64(policy.Uniform(seed, p.key, p.draws, 1))*float64(len(p.kept))), last)
}

func (p *Pool) publishDrawn() error {
	p.playing.Set(float64(p.drawn.number))
	return p.publish(p.drawn.number, p.drawn.weights)
}

// Stop releases the published weights.
func (p *Pool) Stop() error { return errors.Join(p.release(), p.stop()) }
