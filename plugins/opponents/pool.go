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

// Metrics of a pool: how many versions it keeps, and the one that is published.
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
func (c *Pool) Manifest() component.Manifest {
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
func (c *Pool) Configure(decode func(into any) error) error {
	c.config = defaults()
	if err := decode(&c.config); err != nil {
		return err
	}
	return c.config.validate()
}

// Start posts the publication of the version that a restored run was at.
func (c *Pool) Start(h *component.Host) error {
	c.h = h
	h.Slot("on_weights", c.onWeights)
	h.Slot("on_trajectories", c.onTrajectory)
	d, err := policy.Of(h, c.config.Policy)
	if err != nil {
		return err
	}
	if err := d.Network.Validate(); err != nil {
		return err
	}
	c.key = trajectory.PolicyID(c.config.Policy)
	if h.Tables != nil {
		c.learned = h.Tables().Policies[c.config.Policy].Of
	}
	c.count, c.kepts, c.playing = h.Stats.Counter(countDrawn), h.Stats.Gauge(gaugeKept), h.Stats.Gauge(gaugeDrawn)
	if err := c.start(h, &d.Network); err != nil {
		return err
	}
	h.Receiver.Control(loop.Func(c.first), hostabi.Message{})
	return nil
}

// first publishes the restored version, if there is one: receivers have none yet.
func (c *Pool) first(*hostabi.Message) {
	if c.drawn.weights == nil || c.published != 0 {
		return
	}
	if err := c.publishDrawn(); err != nil {
		c.h.Fail(err)
	}
}

// onTrajectory claims a block until the next version is received, so that in synchronous mode the rows that follow are acted
// on with what is drawn then, wherever the policy's inference runs.
func (c *Pool) onTrajectory(m *hostabi.Message) {
	if !c.h.Run.Synchronous {
		return
	}
	tr, lease, err := trajectory.Lease(c.h.Arenas, m.Handle)
	switch {
	case err != nil:
	case c.late(tr):
		err = lease.Release()
	default:
		c.held = append(c.held, lease)
	}
	if err != nil {
		c.h.Fail(fmt.Errorf("trajectory %v: %w", m.Handle, err))
	}
}

// late reports whether the version that is learned from a trajectory has been received already: a rollout in another process
// sends while this one's loop runs, so that the learner may be faster than the message. There will be no next version while the
// block is claimed.
func (c *Pool) late(tr trajectory.Trajectory) bool {
	if tr.Schema.Shape.Policies == "" || c.received == 0 {
		return false
	}
	own, err := tr.Schema.Of(c.learned)
	if err != nil {
		return false // it does not act there
	}
	tr.Schema = own
	return tr.Uint64(trajectory.PolicyVersion)[own.Shape.Steps-1] < c.newest
}

// onWeights receives a version. Its block is claimed while the slot runs.
func (c *Pool) onWeights(m *hostabi.Message) {
	if err := c.receive(m); err != nil {
		c.h.Fail(fmt.Errorf("weights %v: %w", m.Handle, err))
	}
	if err := c.release(); err != nil {
		c.h.Fail(err)
	}
}

// release releases the trajectories that were claimed.
func (c *Pool) release() error {
	var errs []error
	for i := range c.held {
		errs = append(errs, c.held[i].Release())
	}
	c.held = c.held[:0]
	return errors.Join(errs...)
}

// receive keeps a version if it is due, and draws if that is. A version that comes again, as after a resume, is ignored.
func (c *Pool) receive(m *hostabi.Message) error {
	if c.received > 0 && m.PolicyVersion == c.newest {
		return nil
	}
	due := len(c.kept) == 0 || m.PolicyVersion >= c.kept[len(c.kept)-1].number+c.config.Every
	if due {
		if err := c.take(m.Handle); err != nil {
			return err
		}
	}
	c.newest = m.PolicyVersion
	c.received++
	if (c.received-1)%c.config.DrawEvery != 0 {
		return nil
	}
	return c.draw()
}

// take copies a version out of its block.
func (c *Pool) take(h hostabi.Handle) error {
	lease, err := c.h.Arenas.Lease(h)
	if err != nil {
		return err
	}
	defer lease.Release()
	w, err := c.format.Read(lease.Bytes())
	if err != nil {
		return err
	}
	c.keep(version{w.Version, append(c.memory(), lease.Bytes()[:c.format.Bytes()]...)})
	return nil
}

// memory returns empty memory for a version.
func (c *Pool) memory() []byte {
	if n := len(c.free); n > 0 {
		b := c.free[n-1]
		c.free = c.free[:n-1]
		return b[:0]
	}
	return make([]byte, 0, c.format.Bytes())
}

// keep adds a version and drops the oldest but the first where there are too many.
func (c *Pool) keep(v version) {
	c.kept = append(c.kept, v)
	c.trim()
}

// trim drops the oldest versions but the first where there are too many.
func (c *Pool) trim() {
	for len(c.kept) > 1+c.config.Keep {
		gone := c.kept[1]
		c.kept = slices.Delete(c.kept, 1, 2)
		if gone.number != c.drawn.number {
			c.free = append(c.free, gone.weights)
		}
	}
	c.kepts.Set(float64(len(c.kept)))
}

// draw publishes one of the kept versions, unless it is the one that is published already.
func (c *Pool) draw() error {
	if !c.choose() {
		return nil
	}
	return c.publishDrawn()
}

// choose draws one of the kept versions and reports whether it is another one than before. The choice depends on the run's
// seed, the policy's name, the number of draws before and the kept versions alone.
func (c *Pool) choose() (another bool) {
	next, last := c.kept[c.pick()], c.drawn
	c.draws++
	c.count.Inc()
	if last.weights != nil && next.number == last.number {
		return false
	}
	if last.weights != nil && !slices.ContainsFunc(c.kept, func(v version) bool { return v.number == last.number }) {
		c.free = append(c.free, last.weights)
	}
	c.drawn = next
	return true
}

// pick draws the place of a kept version.
func (c *Pool) pick() int {
	seed, last := env.OpponentStream.Seed(c.h.Run.Seed), len(c.kept)-1
	if float64(policy.Uniform(seed, c.key, c.draws, 0)) < c.config.Newest {
		return last
	}
	return min(int(float64(policy.Uniform(seed, c.key, c.draws, 1))*float64(len(c.kept))), last)
}

func (c *Pool) publishDrawn() error {
	c.playing.Set(float64(c.drawn.number))
	return c.publish(c.drawn.number, c.drawn.weights)
}

// Stop releases the published weights.
func (c *Pool) Stop() error { return errors.Join(c.release(), c.stop()) }
