package players

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// MaxTensors bounds the bytes of a file of weights.
const MaxTensors = 4 << 30

// CodeGone is the code of a frozen version that is nowhere; rlhost explain has its page.
const CodeGone = "E058"

// Finder looks for the weights of a frozen policy.
type Finder struct {
	Parts  *graph.Parts
	Graph  *graph.Graph
	Policy *graph.Policy              // of the graph
	Run    *runs.Run                  // that will act with them
	Before map[string]component.State // that it continues from, by component
	// Learned returns the graph in a run's folder, and which policy it has learned: that of the name if there is one, else the leading one.
	Learned func(run *runs.Run, name string) (g *graph.Graph, learned *graph.Policy, err error)
}

// State returns the state of the component that publishes the policy's weights; made is the policy of its table. A policy that was frozen
// in the checkpoint that the run continues from keeps its weights; other weights are looked for where their tables say. Missing weights are
// graph.Problems, at the key that names them.
func (f *Finder) State(made component.Policy) (component.State, error) {
	state, err := f.state(made)
	var coded *table.Error
	if !errors.As(err, &coded) || coded.Code == "" {
		return state, err
	}
	key := "from"
	if coded.Code == CodeGone {
		key = "version"
	}
	c := &graph.Report{File: f.Graph.File}
	c.Add(coded.Code, f.Policy.Place(key), coded.Help, "%s", coded.Sentence())
	return state, c.Sorted().Err()
}

func (f *Finder) state(made component.Policy) (state component.State, err error) {
	frozen, err := KindOf[Frozen](f.Parts, graph.KindFrozen)
	if err != nil {
		return state, err
	}
	source, err := f.source()
	if err != nil {
		return state, err
	}
	if x := OfPolicy(f.Graph, graph.KindFrozen, f.Policy.Name); x != nil {
		if saved, ok := f.Before[x.Name]; ok {
			if was, _, _, err := frozen.Weights(saved); err == nil && was == source {
				return saved, nil
			}
		}
	}
	var n policy.Network
	var w policy.Weights
	switch {
	case f.Policy.Of != "":
		n, w, err = f.ownVersion()
	case strings.HasSuffix(f.Policy.From, graph.SuffixTensors):
		n, w, err = f.file(made)
	default:
		n, w, err = f.otherRun()
	}
	if err != nil {
		return state, err
	}
	return frozen.Freeze(source, n, w)
}

// source says where the weights are from, as the run's own pipeline says it.
func (f *Finder) source() (string, error) {
	from, err := MovedFrom(f.Run.Dir, f.Graph, f.Policy.From)
	source := f.Policy.Of + from
	if f.Policy.Version > 0 {
		source += "@" + strconv.FormatUint(f.Policy.Version, 10)
	}
	return source, err
}

// ownVersion finds a version of a policy of the run itself. Where it is learned no more, the run's folder has it from the previous graph.
func (f *Finder) ownVersion() (n policy.Network, w policy.Weights, err error) {
	g := f.Graph
	if OfPolicy(g, KindLearner, f.Policy.Of) == nil {
		if g, _, err = f.Learned(f.Run, f.Policy.Of); err != nil {
			return n, w, err
		}
	}
	return f.version(f.Run, g, f.Policy.Of)
}

// version finds a version of a learned policy of a run with that graph: in a checkpoint, or in one's pools.
func (f *Finder) version(run *runs.Run, g *graph.Graph, learned string) (n policy.Network, w policy.Weights, err error) {
	var there []uint64
	checkpoints := run.Checkpoints()
	slices.SortStableFunc(checkpoints, func(a, b runs.Saved) int { // the one of that number first: it is of the leading policy
		return f.rank(&a) - f.rank(&b)
	})
	for i := range checkpoints {
		c, err := run.Load(strconv.FormatUint(checkpoints[i].PolicyVersion, 10))
		if errors.Is(err, runs.ErrNotFound) { // it has gone meanwhile
			continue
		}
		if err != nil {
			return n, w, err
		}
		r := Reader{Parts: f.Parts, Graph: g, States: c.Components}
		n, w, saved, err := r.version(learned, f.Policy.Version)
		if err != nil || slices.Contains(saved, f.Policy.Version) {
			return n, w, err
		}
		there = append(there, saved...)
	}
	slices.Sort(there)
	return n, w, f.gone(learned, run.ID(), slices.Compact(there))
}

func (f *Finder) rank(s *runs.Saved) int {
	if s.PolicyVersion == f.Policy.Version {
		return 0
	}
	return 1
}

// gone says that a version is nowhere, and which are somewhere.
func (f *Finder) gone(learned, run string, there []uint64) error {
	reason := fmt.Sprintf("policy %q: version %d of policy %q is not there: ", f.Policy.Name, f.Policy.Version, learned)
	if len(there) == 0 {
		return &table.Error{Code: CodeGone, Reason: reason + "no checkpoint of run " + run + " has a version of it",
			Help: "freeze a version once it is saved: run `rlhost checkpoint` while it is the newest, then reload"}
	}
	list := make([]string, len(there))
	for i, v := range there {
		list[i] = strconv.FormatUint(v, 10)
	}
	reason += fmt.Sprintf("the checkpoints of run %s and their pools have %s", run, strings.Join(list, ", "))
	return &table.Error{Code: CodeGone, Reason: reason,
		Help: "name one of these; `rlhost checkpoint` saves the newest, and run.checkpoint.keep, keep_every_env_steps and the keep of a pool say which ones stay"}
}

// version returns a version of a learned policy, if it is saved: the learner's, or one in a pool.
func (r *Reader) version(learned string, number uint64) (n policy.Network, w policy.Weights, saved []uint64, err error) {
	state, err := r.state(KindLearner, learned)
	if errors.Is(err, errNoState) {
		return n, w, nil, nil
	}
	if err != nil {
		return n, w, nil, err
	}
	if n, w, err = WeightsOf(r.Parts, state); err != nil || w.Version == number {
		return n, w, []uint64{w.Version}, err
	}
	saved = []uint64{w.Version}
	for i := range r.Graph.Policies {
		p := &r.Graph.Policies[i]
		if p.Of != learned || p.Role() != graph.Pool {
			continue
		}
		pool, err := r.pool(p)
		if errors.Is(err, errNoState) {
			continue
		}
		if err != nil {
			return n, w, nil, err
		}
		kept, err := pool.Versions(pool.state)
		if err != nil {
			return n, w, nil, err
		}
		if saved = append(saved, kept...); slices.Contains(kept, number) {
			w, err = pool.Weights(pool.state, &n, number)
			return n, w, saved, err
		}
	}
	return n, w, saved, nil
}

// otherRun finds the weights in the run that the policy is from: of the policy with the same name if it learns one, else of its
// leading policy; of the version that is named, else of the best checkpoint, else of the newest.
func (f *Finder) otherRun() (n policy.Network, w policy.Weights, err error) {
	run, err := f.open()
	if err != nil {
		return n, w, f.missing(err)
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if run.ID() == f.Run.ID() {
		return n, w, f.missing(fmt.Errorf("%s is this run itself: name an older one by its number, or a version of a policy with `of`", f.Policy.From))
	}
	its, trained, err := f.Learned(run, f.Policy.Name)
	if err != nil {
		return n, w, f.missing(err)
	}
	if f.Policy.Version > 0 {
		return f.version(run, its, trained.Name)
	}
	c, err := run.Load(run.BestOf(trained.Name))
	if errors.Is(err, runs.ErrNotFound) {
		c, err = run.Load(runs.Latest)
	}
	if err != nil {
		return n, w, f.missing(err)
	}
	x := OfPolicy(its, KindLearner, trained.Name)
	if x == nil {
		return n, w, f.missing(fmt.Errorf("nothing learns policy %q there", trained.Name))
	}
	return WeightsOf(f.Parts, c.Components[x.Name])
}

// open opens the run that the policy is from: by its folder, else by its name.
func (f *Finder) open() (*runs.Run, error) {
	path, err := f.Graph.Stored(f.Policy.From)
	if err != nil {
		return nil, err
	}
	run, err := runs.Open(f.Graph.Run.Dir, path)
	if !errors.Is(err, runs.ErrNotFound) {
		return run, err
	}
	if run, err = runs.Open(f.Graph.Run.Dir, f.Policy.From); err == nil {
		return run, nil
	}
	if _, wrong := os.Stat(path); wrong == nil {
		err = fmt.Errorf("%s holds no run, and %w", path, err)
	}
	return nil, err
}

// file finds the weights in the safetensors file that the policy is from.
func (f *Finder) file(made component.Policy) (n policy.Network, w policy.Weights, err error) {
	path, err := f.Graph.Stored(f.Policy.From)
	if err != nil {
		return n, w, f.missing(err)
	}
	b, err := files.Read(path, MaxTensors)
	if err != nil {
		return n, w, f.missing(err)
	}
	tensors, about, err := runs.DecodeTensors(b)
	if err != nil {
		return n, w, f.missing(fmt.Errorf("%s: %w", path, err))
	}
	d, err := policy.DefinitionOf(f.Policy.Name, made)
	if err != nil {
		return n, w, err
	}
	learner, err := KindOf[Learner](f.Parts, KindLearner)
	if err != nil {
		return n, w, err
	}
	state, err := learner.FromTensors(d.Network, tensors)
	if err != nil {
		return n, w, &table.Error{Code: policy.CodeNetwork, Reason: fmt.Sprintf("policy %q: %s: %v", f.Policy.Name, path, err),
			Help: "names and shapes are those of rlhost export --format safetensors: write [policy] as it was when the file was written"}
	}
	n, w, err = learner.Weights(state)
	if version, wrong := strconv.ParseUint(about["policy_version"], 10, 64); wrong == nil {
		w.Version = version
	}
	return n, w, err
}

func (f *Finder) missing(err error) error {
	return &table.Error{Code: "E012", Reason: fmt.Sprintf("policy %q: %v", f.Policy.Name, err), Help: graph.HelpStored, Err: err}
}

// MovedFrom returns a policy's from as a file in another folder would give it.
func MovedFrom(dir string, g *graph.Graph, from string) (string, error) {
	if from == "" || filepath.IsAbs(from) {
		return from, nil
	}
	path := filepath.Join(g.Dir, from)
	if _, err := os.Stat(path); err != nil { // it is a run's name, or gone
		return from, nil
	}
	return files.Relative(dir, path)
}
