package learner

import (
	"errors"
	"fmt"
	"runtime"
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
	here       func() (hosts []ppo.HostCaller, joins bool) // see NewWith; or nil
	normalizer *policy.Normalizer                          // nil without normalised observations

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
	members              []trajectory.Member // of the dataset under way
	values               []float64
	trained              *stat.Counter // env steps learned from, by the learners of this process
	trainedBeside        *stat.Counter // env steps of this learner; nil in the leading policy's learner, which has all others
	droppedRows, skipped *stat.Counter
	cutRows              *stat.Counter // of datasets that Cut has ended
	gathered             *stat.Counter // bytes of observations that backends have copied
	lag                  lag
	loud                 loud
	apart                bool // warnOfDivergence has warned
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

// NewWith returns an unconfigured learner that has others on joined machines: here returns the machines that are here now, sorted, and false
// where none can join the run. The learner's goroutine calls it.
func NewWith(here func() (hosts []ppo.HostCaller, joins bool)) component.Component {
	return &Learner{here: here}
}

// CodeNoHosts is the code of learners on joined machines where none can join; rlhost explain has its page.
const CodeNoHosts = "E159"

// hosts returns the joined machines that learn, too.
func (l *Learner) hosts() (ppo.Hosts, error) {
	if l.config.Hosts == 0 {
		return ppo.Hosts{}, nil
	}
	joins := false
	if l.here != nil {
		_, joins = l.here()
	}
	if !joins {
		return ppo.Hosts{}, &table.Error{Key: "hosts", Code: CodeNoHosts, Reason: fmt.Sprintf("is %d, and no machine can join the run of this learner", l.config.Hosts),
			Help: "add [cluster] with listen or servers, or use rlhost train --listen; a learner with runtime = \"process\" has no machines"}
	}
	return ppo.Hosts{Most: l.config.Hosts, Policy: l.config.Policy, Log: l.h.Log, Here: func() []ppo.HostCaller {
		list, _ := l.here()
		return list
	}}, nil
}

// Manifest lists the ports.
func (l *Learner) Manifest() component.Manifest {
	return component.Manifest{
		Signals: []component.Port{
			{Name: "weights", Payload: component.PayloadWeights, Doc: "a new policy version"},
			{Name: "stats", Payload: component.PayloadStats, Doc: "what one dataset's update reports"},
		},
		Slots: []component.Port{{Name: "on_dataset", Payload: component.PayloadDataset, Doc: "enough rows for one learner round"}},
	}
}

// Configure reads the component's table.
func (l *Learner) Configure(decode func(into any) error) error {
	l.config = defaults()
	if err := decode(&l.config); err != nil {
		return err
	}
	return l.config.validate()
}

// BurnInRows is component.Warming's.
func (l *Learner) BurnInRows() int { return l.config.BurnInRows }

// CodeChunks is the code of rows that are no whole chunks of the policy; rlhost explain has its page.
const CodeChunks = "E052"

// Start makes the backend's learner and posts the publication of the first policy version.
func (l *Learner) Start(h *component.Host) error {
	l.h = h
	l.weights, l.stats = h.Signal("weights"), h.Signal("stats")
	h.Slot("on_dataset", l.onDataset)
	l.droppedRows, l.skipped = h.Stats.Counter("lag/dropped_rows"), h.Stats.Counter("learner/stats_skipped")
	l.gathered = h.Stats.Counter("learner/gathered_bytes")
	l.trained, l.cutRows = h.Stats.Counter(component.CounterTrained), h.Stats.Counter(component.CounterCut)
	if leading := h.Run.Policy; leading != "" && leading != l.config.Policy {
		l.trainedBeside = h.Stats.Counter(component.OfPolicy(l.config.Policy, component.CounterTrained))
	}
	definition, err := policy.Of(h, l.config.Policy)
	if err != nil {
		return err
	}
	l.definition = definition
	n := &definition.Network
	if err := n.Validate(); err != nil {
		return err
	}
	if n.Chunk > l.config.Minibatch {
		return &table.Error{Code: CodeChunks, Reason: fmt.Sprintf("minibatch = %d rows is less than one of the chunks that policy %q is learned in, %d rows", l.config.Minibatch, l.config.Policy, n.Chunk),
			Help: fmt.Sprintf("use minibatch = %d or more in [component.%s], or a smaller net.chunk", n.Chunk, h.Name)}
	}
	if e := component.CheckBurnIn(l.config.BurnInRows, l.config.Policy, n.Chunk); e != nil {
		return e
	}
	if err := l.config.checkShares(n.Chunk); err != nil {
		return err
	}
	l.warnOfProcessors(runtime.GOMAXPROCS(0))
	l.format = n.Weights()
	if n.NormalizeObs() {
		l.normalizer = policy.NewNormalizer(n.Stats())
		l.obsMean, l.obsScale = make([]float32, n.Stats()), make([]float32, n.Stats())
		l.normalizer.Weights(l.obsMean, l.obsScale)
	}
	hosts, err := l.hosts()
	if err != nil {
		return err
	}
	l.backend, err = ppo.NewLearnerWith(definition.Backend, n, policy.Init(n, h.Run.Seed), l.config.Config, hosts)
	if err != nil {
		return err
	}
	names := StatNames()
	l.statsAt, err = h.Arena(arena.Config{
		Name: h.Name + ".stats", Blocks: statsBlocks, BlockBytes: 8 * len(names), Schema: trajectory.Names(names), ReadOnly: true,
	})
	if err != nil {
		return err
	}
	l.weightsAt, err = h.Arena(arena.Config{
		Name: h.Name + ".weights", BlockBytes: l.format.Bytes(), Blocks: component.WeightBlocks(h.Readers("weights")), ReadOnly: true,
	})
	if err != nil {
		return err
	}
	h.Receiver.Control(loop.Func(l.first), hostabi.Message{})
	return nil
}

// statsBlocks is how many updates' reports may wait for the runner before further ones are skipped.
const statsBlocks = 128

// first publishes the first policy version: the initial parameters, or a restored state's. Parameters that equal the newest published
// version keep its number: another number would make a pool of opponents draw once more.
func (l *Learner) first(*hostabi.Message) {
	l.changing.Lock()
	defer l.changing.Unlock()
	if l.version < l.h.Published {
		l.version = l.h.Published + 1
	}
	if err := l.publish(); err != nil {
		l.h.Fail(err)
	}
}

// onDataset learns from a dataset and publishes the next policy version.
func (l *Learner) onDataset(m *hostabi.Message) {
	l.changing.Lock()
	err := l.learn(m.Handle)
	l.changing.Unlock()
	switch {
	case errors.Is(err, ppo.ErrCut): // the run ends
	case errors.Is(err, errGone):
		l.h.Log.Warn("a dataset is lost: the process that made it has died", "err", err)
	case err != nil:
		l.h.Fail(err)
	default:
		l.h.Boundary()
	}
}

func (l *Learner) learn(h hostabi.Handle) error {
	started := time.Now()
	defer l.releaseAll()
	if err := l.open(h); err != nil {
		return fmt.Errorf("dataset %v: %w", h, err)
	}
	from := l.h.Trace.Now()
	l.lag.measure(&l.dataset, l.version, &l.stepsAt, l.optimizerSteps)
	rates := l.config.rates(l.envSteps)
	stats, err := l.backend.Update(&l.dataset, rates)
	l.gathered.Add(stats.Gathered)
	l.optimizerSteps += uint64(stats.OptimizerSteps)
	if errors.Is(err, ppo.ErrCut) {
		l.cutRows.Add(uint64(stats.Rows))
		err = errors.Join(err, l.settle(trajectory.Cut))
	}
	if err != nil {
		return err
	}
	if l.normalizer != nil {
		if err := l.normalizer.Update(&l.dataset, &l.definition.Network); err != nil {
			return err
		}
		l.normalizer.Weights(l.obsMean, l.obsScale)
	}
	l.warnOfClip(&stats)
	l.warnOfDivergence(&stats)
	l.warnOfStaleness(&stats)
	l.envSteps += uint64(stats.Rows)
	l.trained.Add(uint64(stats.Rows))
	if l.trainedBeside != nil {
		l.trainedBeside.Add(uint64(stats.Rows))
	}
	if err := l.settle(trajectory.Trained); err != nil {
		return err
	}
	l.version++
	l.index++
	l.h.Trace.Learned(l.h.Name, h, l.config.Policy, l.version, from)
	if err := l.publish(); err != nil {
		return err
	}
	rates.LearningRate = stats.LearningRate
	return l.report(&stats, rates, time.Since(started))
}

// Cut ends the update under way between two minibatches; see component.Cuttable. Any goroutine.
func (l *Learner) Cut() { l.backend.Cut() }

// errGone: a trajectory of a dataset no longer exists. The component that made the dataset claims its trajectories until
// they are learned from, so it was in a process that has died.
var errGone = errors.New("a trajectory is gone")

// open claims the dataset and its trajectories and makes the backend's view of them.
func (l *Learner) open(h hostabi.Handle) error {
	list, err := l.h.Arenas.Lease(h)
	if err != nil {
		return err
	}
	l.leases = append(l.leases, list)
	_, l.members, err = trajectory.ReadDataset(list.Bytes(), l.members[:0])
	if err != nil {
		return err
	}
	l.dataset.Blocks, l.dataset.Parts = l.dataset.Blocks[:0], l.dataset.Parts[:0]
	for _, m := range l.members {
		tr, err := l.claim(m.Handle)
		if errors.Is(err, arena.ErrStale) {
			return fmt.Errorf("%w: %v: %w", errGone, m.Handle, err)
		}
		if err != nil {
			return fmt.Errorf("trajectory %v: %w", m.Handle, err)
		}
		l.dataset.Blocks, l.dataset.Parts = append(l.dataset.Blocks, tr), append(l.dataset.Parts, m.Part)
	}
	l.dataset.ObsMean, l.dataset.ObsScale = l.obsMean, l.obsScale
	l.dataset.Seed, l.dataset.Index = l.h.Run.Seed, l.index
	return nil
}

func (l *Learner) claim(h hostabi.Handle) (trajectory.Trajectory, error) {
	tr, lease, err := trajectory.Lease(l.h.Arenas, h)
	if err != nil {
		return trajectory.Trajectory{}, err
	}
	l.leases = append(l.leases, lease)
	tr.Schema, err = tr.Schema.Of(l.config.Policy)
	return tr, err
}

// settle notes the fate of the dataset's trajectories.
func (l *Learner) settle(f trajectory.Fate) error {
	for i, m := range l.members {
		a, err := l.h.Arenas.Of(m.Handle)
		if err != nil {
			return err
		}
		schema := l.dataset.Blocks[i].Schema
		place, _ := schema.PolicyPlace(l.config.Policy)
		if err := trajectory.Settle(a, m.Handle, schema.PartPlace(place, m.Part.Number), f); err != nil {
			return fmt.Errorf("trajectory %v: %w", m.Handle, err)
		}
	}
	return nil
}

func (l *Learner) releaseAll() {
	for i := range l.leases {
		if err := l.leases[i].Release(); err != nil {
			l.h.Fail(err)
		}
	}
	l.leases = l.leases[:0]
}

// publish writes the current parameters into a new block and emits them as the newest version. It releases the previous
// version, which lives as long as its readers.
func (l *Learner) publish() error {
	loan, err := l.weightsAt.Loan()
	if err != nil {
		return fmt.Errorf("weights: %w", err)
	}
	w, err := l.format.Format(loan.Bytes(), l.version)
	if err != nil {
		return err
	}
	if err := l.backend.Params(w.Params); err != nil {
		return err
	}
	copy(w.ObsMean, l.obsMean)
	copy(w.ObsScale, l.obsScale)
	handle, err := loan.Commit()
	if err != nil {
		return err
	}
	if l.published != 0 {
		if err := l.weightsAt.Release(l.published); err != nil {
			return err
		}
	}
	l.published = handle
	l.stepsAt.set(l.version, l.optimizerSteps)
	return l.weights.Emit(hostabi.Message{Handle: handle, PolicyVersion: l.version})
}

// Stop releases the published weights and closes the backend.
func (l *Learner) Stop() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	var errs []error
	if l.published != 0 {
		errs = append(errs, l.weightsAt.Release(l.published))
		l.published = 0
	}
	if l.backend != nil {
		errs = append(errs, l.backend.Close())
		l.backend = nil
	}
	return errors.Join(errs...)
}
