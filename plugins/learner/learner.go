package learner

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/ppo"
	"github.com/rlhost/rlhost/hostabi"
)

// Learner improves one policy.
type Learner struct {
	config     config
	h          *component.Host
	definition *policy.Definition
	format     policy.WeightsFormat
	backend    ppo.Learner
	normalizer *policy.Normalizer // nil without normalised observations

	weights, stats       *bus.Signal
	weightsAt, statsAt   *arena.Arena
	published            hostabi.Handle // newest weights; this component keeps a claim on them
	obsMean, obsScale    []float32      // of the published version
	version              uint64
	envSteps             uint64 // learned from
	optimizerSteps       uint64
	stepsAt              stepsAtVersion
	index                uint64 // of the next dataset
	dataset              policy.Dataset
	leases               []arena.Lease
	handles              []hostabi.Handle
	values               []float64
	trained              *stat.Counter // env steps learned from, by the learners of this process
	trainedBeside        *stat.Counter // those of this learner; nil in that of the leading policy, which has the rest
	droppedRows, skipped *stat.Counter
	cutRows              *stat.Counter // of datasets that Cut has ended
	gathered             *stat.Counter // bytes of observations that backends have copied
	lag                  lag
	loud                 loud
	apart                bool // warnOfDivergence has told
	stale                stale

	changing sync.Mutex // held while the state changes
}

var (
	_ component.Component = (*Learner)(nil)
	_ component.Cuttable  = (*Learner)(nil)
	_ component.Apart     = (*Learner)(nil)
)

// New returns an unconfigured learner.
func New() component.Component { return &Learner{} }

// Manifest lists the ports.
func (c *Learner) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{
			{Name: "weights", Payload: component.PayloadWeights, Doc: "a new policy version"},
			{Name: "stats", Payload: component.PayloadStats, Doc: "what one dataset's update reports"},
		},
		Slots: []component.Port{{Name: "on_dataset", Payload: component.PayloadDataset, Doc: "enough rows for one learner round"}},
	}
}

// Configure reads the component's table.
func (c *Learner) Configure(decode func(into any) error) error {
	c.config = defaults()
	if err := decode(&c.config); err != nil {
		return err
	}
	return c.config.validate()
}

// CodeChunks is the code of rows that are no whole chunks of the policy; rlhost explain has its page.
const CodeChunks = "E052"

// Start makes the backend's learner and posts the publication of the first policy version.
func (c *Learner) Start(h *component.Host) error {
	c.h = h
	c.weights, c.stats = h.Signal("weights"), h.Signal("stats")
	h.Slot("on_dataset", c.onDataset)
	c.droppedRows, c.skipped = h.Stats.Counter("lag/dropped_rows"), h.Stats.Counter("learner/stats_skipped")
	c.gathered = h.Stats.Counter("learner/gathered_bytes")
	c.trained, c.cutRows = h.Stats.Counter(component.CounterTrained), h.Stats.Counter(component.CounterCut)
	if leading := h.Run.Policy; leading != "" && leading != c.config.Policy {
		c.trainedBeside = h.Stats.Counter(component.OfPolicy(c.config.Policy, component.CounterTrained))
	}
	definition, err := policy.Of(h, c.config.Policy)
	if err != nil {
		return err
	}
	c.definition = definition
	n := &definition.Network
	if err := n.Validate(); err != nil {
		return err
	}
	if n.Chunk > c.config.Minibatch {
		return &table.Error{Code: CodeChunks, Reason: fmt.Sprintf("minibatch = %d rows is less than one of the chunks that policy %q is learned in, %d rows", c.config.Minibatch, c.config.Policy, n.Chunk),
			Help: fmt.Sprintf("use minibatch = %d or more in [component.%s], or a smaller net.chunk", n.Chunk, h.Name)}
	}
	c.format = n.Weights()
	if n.NormalizeObs() {
		c.normalizer = policy.NewNormalizer(n.Stats())
		c.obsMean, c.obsScale = make([]float32, n.Stats()), make([]float32, n.Stats())
		c.normalizer.Weights(c.obsMean, c.obsScale)
	}
	c.backend, err = ppo.NewLearner(definition.Backend, n, policy.Init(n, h.Run.Seed), c.config.Config)
	if err != nil {
		return err
	}
	names := StatNames()
	c.statsAt, err = h.Arena(arena.Config{
		Name: h.Name + ".stats", Blocks: statsBlocks, BlockBytes: 8 * len(names), Schema: trajectory.Names(names), ReadOnly: true,
	})
	if err != nil {
		return err
	}
	c.weightsAt, err = h.Arena(arena.Config{
		Name: h.Name + ".weights", BlockBytes: c.format.Bytes(), Blocks: component.WeightBlocks(h.Readers("weights")), ReadOnly: true,
	})
	if err != nil {
		return err
	}
	h.Receiver.Control(loop.Func(c.first), hostabi.Message{})
	return nil
}

// statsBlocks is how many updates' reports may wait for the runner before further ones are skipped.
const statsBlocks = 128

// first publishes the first policy version: the initial parameters, or those of a restored state. Those that are the newest published
// version are published as that: another number would make a pool of opponents draw once more.
func (c *Learner) first(*hostabi.Message) {
	c.changing.Lock()
	defer c.changing.Unlock()
	if c.version < c.h.Published {
		c.version = c.h.Published + 1
	}
	if err := c.publish(); err != nil {
		c.h.Fail(err)
	}
}

// onDataset learns from a dataset and publishes the next policy version.
func (c *Learner) onDataset(m *hostabi.Message) {
	c.changing.Lock()
	err := c.learn(m.Handle)
	c.changing.Unlock()
	switch {
	case errors.Is(err, ppo.ErrCut): // the run ends
	case errors.Is(err, errGone):
		c.h.Log.Warn("a dataset is lost: the process that made it has died", "err", err)
	case err != nil:
		c.h.Fail(err)
	default:
		c.h.Boundary()
	}
}

func (c *Learner) learn(h hostabi.Handle) error {
	started := time.Now()
	defer c.releaseAll()
	if err := c.open(h); err != nil {
		return fmt.Errorf("dataset %v: %w", h, err)
	}
	c.lag.measure(&c.dataset, c.version, &c.stepsAt, c.optimizerSteps)
	rates := c.config.rates(c.envSteps)
	stats, err := c.backend.Update(&c.dataset, rates)
	c.gathered.Add(stats.Gathered)
	c.optimizerSteps += uint64(stats.OptimizerSteps)
	if errors.Is(err, ppo.ErrCut) {
		c.cutRows.Add(uint64(stats.ValidRows))
		err = errors.Join(err, c.settle(trajectory.Cut))
	}
	if err != nil {
		return err
	}
	if c.normalizer != nil {
		if err := c.normalizer.Update(&c.dataset, &c.definition.Network); err != nil {
			return err
		}
		c.normalizer.Weights(c.obsMean, c.obsScale)
	}
	c.warnOfClip(&stats)
	c.warnOfDivergence(&stats)
	c.warnOfStaleness(&stats)
	c.envSteps += uint64(stats.ValidRows)
	c.trained.Add(uint64(stats.ValidRows))
	if c.trainedBeside != nil {
		c.trainedBeside.Add(uint64(stats.ValidRows))
	}
	if err := c.settle(trajectory.Trained); err != nil {
		return err
	}
	c.version++
	c.index++
	if err := c.publish(); err != nil {
		return err
	}
	rates.LearningRate = stats.LearningRate
	return c.report(&stats, rates, time.Since(started))
}

// Cut ends the update that goes on between two minibatches; see component.Cuttable. Any goroutine.
func (c *Learner) Cut() { c.backend.Cut() }

// errGone: a trajectory of a dataset no longer exists. The component that made the dataset claims its trajectories until
// they are learned from, so it was in a process that has died.
var errGone = errors.New("a trajectory is gone")

// open claims the dataset and its trajectories and makes the backend's view of them.
func (c *Learner) open(h hostabi.Handle) error {
	list, err := c.h.Arenas.Lease(h)
	if err != nil {
		return err
	}
	c.leases = append(c.leases, list)
	_, c.handles, err = trajectory.ReadDataset(list.Bytes(), c.handles[:0])
	if err != nil {
		return err
	}
	c.dataset.Blocks = c.dataset.Blocks[:0]
	for _, handle := range c.handles {
		tr, err := c.claim(handle)
		if errors.Is(err, arena.ErrStale) {
			return fmt.Errorf("%w: %v: %w", errGone, handle, err)
		}
		if err != nil {
			return fmt.Errorf("trajectory %v: %w", handle, err)
		}
		c.dataset.Blocks = append(c.dataset.Blocks, tr)
	}
	c.dataset.ObsMean, c.dataset.ObsScale = c.obsMean, c.obsScale
	c.dataset.Seed, c.dataset.Index = c.h.Run.Seed, c.index
	return nil
}

func (c *Learner) claim(h hostabi.Handle) (trajectory.Trajectory, error) {
	tr, lease, err := trajectory.Lease(c.h.Arenas, h)
	if err != nil {
		return trajectory.Trajectory{}, err
	}
	c.leases = append(c.leases, lease)
	tr.Schema, err = tr.Schema.Of(c.config.Policy)
	return tr, err
}

// settle notes what has become of the dataset's trajectories.
func (c *Learner) settle(f trajectory.Fate) error {
	for i, h := range c.handles {
		a, err := c.h.Arenas.Of(h)
		if err != nil {
			return err
		}
		place, _ := c.dataset.Blocks[i].Schema.PolicyPlace(c.config.Policy)
		if err := trajectory.Settle(a, h, place, f); err != nil {
			return fmt.Errorf("trajectory %v: %w", h, err)
		}
	}
	return nil
}

func (c *Learner) releaseAll() {
	for i := range c.leases {
		if err := c.leases[i].Release(); err != nil {
			c.h.Fail(err)
		}
	}
	c.leases = c.leases[:0]
}

// publish writes the current parameters into a block of their own and emits them as the newest version. It releases the
// previous version, which lives as long as its readers.
func (c *Learner) publish() error {
	loan, err := c.weightsAt.Loan()
	if err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	w, err := c.format.Format(loan.Bytes(), c.version)
	if err != nil {
		return err
	}
	if err := c.backend.Params(w.Params); err != nil {
		return err
	}
	copy(w.ObsMean, c.obsMean)
	copy(w.ObsScale, c.obsScale)
	handle, err := loan.Commit()
	if err != nil {
		return err
	}
	if c.published != 0 {
		if err := c.weightsAt.Release(c.published); err != nil {
			return err
		}
	}
	c.published = handle
	c.stepsAt.set(c.version, c.optimizerSteps)
	return c.weights.Emit(hostabi.Message{Handle: handle, PolicyVersion: c.version})
}

// Stop releases the published weights and closes the backend.
func (c *Learner) Stop() error {
	c.changing.Lock()
	defer c.changing.Unlock()
	var errs []error
	if c.published != 0 {
		errs = append(errs, c.weightsAt.Release(c.published))
		c.published = 0
	}
	if c.backend != nil {
		errs = append(errs, c.backend.Close())
		c.backend = nil
	}
	return errors.Join(errs...)
}
