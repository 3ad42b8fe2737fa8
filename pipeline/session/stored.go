package session

import (
	"errors"
	"fmt"
	"maps"
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

// Kinds of components that have the weights of policies which nobody learns.
const (
	kindFrozen = "frozen"
	kindPool   = "opponents"
)

// Frozen reads and makes the saved state of components of kind frozen. An unconfigured component of the kind is one.
type Frozen interface {
	// Freeze returns the state of a policy that acts with these weights. source says where they are from.
	Freeze(source string, n policy.Network, w policy.Weights) (component.State, error)
	// Weights returns what a state holds.
	Weights(component.State) (source string, n policy.Network, w policy.Weights, err error)
}

// Pool reads the saved state of components of kind opponents.
type Pool interface {
	// Versions lists the versions that a state keeps, ascending.
	Versions(component.State) ([]uint64, error)
	// Drawn returns the one that acted, if any is kept.
	Drawn(component.State) (version uint64, ok bool, err error)
	// Weights returns a version of a state, for the network that its policy has.
	Weights(state component.State, n *policy.Network, version uint64) (policy.Weights, error)
}

// CodeGone is the code of a frozen version that is nowhere; rlhost explain has its page.
const CodeGone = "E058"

// storedFor returns a session's pipeline.BuildOptions.Stored.
func storedFor(s *Session) func(g *graph.Graph, policy string, made component.Policy) (component.State, error) {
	return func(g *graph.Graph, name string, made component.Policy) (component.State, error) {
		f := finder{s: s, parts: s.o.Parts, graph: g, policy: g.Policy(name)}
		return f.state(made)
	}
}

// finder looks for the weights of a frozen policy of a graph.
type finder struct {
	s      *Session // whose run is to act with them
	parts  *graph.Parts
	graph  *graph.Graph
	policy *graph.Policy
}

// state returns the state of the frozen policy. What the run goes on from has the weights of policies that were frozen then; those
// of others are looked for where their tables say.
func (f *finder) state(made component.Policy) (state component.State, err error) {
	frozen, err := kindOf[Frozen](f.parts, kindFrozen)
	if err != nil {
		return state, err
	}
	source, err := f.source()
	if err != nil {
		return state, err
	}
	if x := ofPolicy(f.graph, kindFrozen, f.policy.Name); x != nil {
		if saved, ok := f.s.before.Components[x.Name]; ok {
			if was, _, _, err := frozen.Weights(saved); err == nil && was == source {
				return saved, nil
			}
		}
	}
	var n policy.Network
	var w policy.Weights
	switch {
	case f.policy.Of != "":
		n, w, err = f.version(f.s.run, f.graph, f.policy.Of)
	case strings.HasSuffix(f.policy.From, graph.SuffixTensors):
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
func (f *finder) source() (string, error) {
	from, err := movedFrom(f.s.run.Dir, f.graph, f.policy.From)
	source := f.policy.Of + from
	if f.policy.Version > 0 {
		source += "@" + strconv.FormatUint(f.policy.Version, 10)
	}
	return source, err
}

// ofPolicy returns the component of a kind that a policy is of, or nil.
func ofPolicy(g *graph.Graph, kind, policy string) *graph.Component {
	i := slices.IndexFunc(g.Components, func(c graph.Component) bool { return c.Kind == kind && c.Policy == policy })
	if i < 0 {
		return nil
	}
	return &g.Components[i]
}

// version finds a version of a learned policy of a run with that graph: in a checkpoint, or in one's pools.
func (f *finder) version(run *runs.Run, g *graph.Graph, learned string) (n policy.Network, w policy.Weights, err error) {
	seen := map[uint64]bool{}
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
		all, err := versionsOf(f.parts, g, c.Components, learned)
		if err != nil {
			return n, w, err
		}
		if read, ok := all[f.policy.Version]; ok {
			return read()
		}
		for v := range all {
			seen[v] = true
		}
	}
	return n, w, f.gone(learned, run.ID(), slices.Sorted(maps.Keys(seen)))
}

func (f *finder) rank(s *runs.Saved) int {
	if s.PolicyVersion == f.policy.Version {
		return 0
	}
	return 1
}

// gone says that a version is nowhere, and which are somewhere.
func (f *finder) gone(learned, run string, there []uint64) error {
	reason := fmt.Sprintf("policy %q: version %d of policy %q is not there: ", f.policy.Name, f.policy.Version, learned)
	if len(there) == 0 {
		return &table.Error{Code: CodeGone, Reason: reason + "the run has no checkpoint yet",
			Help: "freeze a version once it is saved: run `rlhost checkpoint` while it is the newest, then reload"}
	}
	list := make([]string, len(there))
	for i, v := range there {
		list[i] = strconv.FormatUint(v, 10)
	}
	return &table.Error{Code: CodeGone, Reason: reason + fmt.Sprintf("the checkpoints of run %s and their pools have %s", run, strings.Join(list, ", ")),
		Help: "name one of these; `rlhost checkpoint` saves the newest, and run.checkpoint.keep, keep_every and the keep of a pool say which ones stay"}
}

// reading reads one version of a policy.
type reading func() (policy.Network, policy.Weights, error)

// versionsOf returns what reads each version of a learned policy that components' states have: the learner's, and those of pools.
func versionsOf(parts *graph.Parts, g *graph.Graph, states map[string]component.State, learned string) (map[uint64]reading, error) {
	all := map[uint64]reading{}
	reader, err := learnerOf(parts)
	if err != nil {
		return nil, err
	}
	x := ofPolicy(g, kindLearner, learned)
	if x == nil {
		return all, nil
	}
	state, ok := states[x.Name]
	if !ok {
		return all, nil
	}
	version, _, err := reader.Progress(state)
	if err != nil {
		return nil, err
	}
	newest := func() (policy.Network, policy.Weights, error) { return reader.Weights(state) }
	for i := range g.Components {
		if err := poolVersions(parts, g, states, &g.Components[i], learned, newest, all); err != nil {
			return nil, err
		}
	}
	all[version] = newest
	return all, nil
}

// poolVersions adds what reads the versions of a learned policy that a component keeps, if it is a pool of such.
func poolVersions(parts *graph.Parts, g *graph.Graph, states map[string]component.State, x *graph.Component, learned string,
	newest reading, all map[uint64]reading) error {
	state, saved := states[x.Name]
	if p := g.Policy(x.Policy); x.Kind != kindPool || !saved || p == nil || p.Of != learned {
		return nil
	}
	pool, err := kindOf[Pool](parts, kindPool)
	if err != nil {
		return err
	}
	versions, err := pool.Versions(state)
	for _, v := range versions {
		all[v] = func() (policy.Network, policy.Weights, error) {
			n, _, err := newest()
			if err != nil {
				return n, policy.Weights{}, err
			}
			w, err := pool.Weights(state, &n, v)
			return n, w, err
		}
	}
	return err
}

// otherRun finds the weights in the run that the policy is from: of the policy with the same name if it learns one, else of its
// leading policy; of the version that is named, else of the best checkpoint, else of the newest.
func (f *finder) otherRun() (n policy.Network, w policy.Weights, err error) {
	path, err := f.graph.Stored(f.policy.From)
	if err != nil {
		return n, w, f.missing(err)
	}
	if _, err := os.Stat(path); err != nil { // NAME/NUMBER, whose folder is called otherwise
		path = f.policy.From
	}
	run, err := runs.Open(f.graph.Run.Dir, path)
	if err != nil {
		return n, w, f.missing(err)
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if run.ID() == f.s.run.ID() {
		return n, w, f.missing(fmt.Errorf("%s is this run itself: name an older one by its number, or a version of a policy with `of`", f.policy.From))
	}
	parts := *f.parts // its programs are another run's
	its, _, err := ownPipeline(run, nil, &parts)
	if err != nil {
		return n, w, f.missing(err)
	}
	name := ""
	if p := its.Policy(f.policy.Name); p != nil && p.Role() == graph.Learned {
		name = p.Name
	}
	trained, learner, err := learned(its, name)
	if err != nil {
		return n, w, err
	}
	if f.policy.Version > 0 {
		return f.version(run, its, trained.Name)
	}
	c, err := run.Load(runs.Best)
	if errors.Is(err, runs.ErrNotFound) {
		c, err = run.Load(runs.Latest)
	}
	if err != nil {
		return n, w, f.missing(err)
	}
	return weightsOf(f.parts, c.Components[learner])
}

// file finds the weights in the safetensors file that the policy is from.
func (f *finder) file(made component.Policy) (n policy.Network, w policy.Weights, err error) {
	path, err := f.graph.Stored(f.policy.From)
	if err != nil {
		return n, w, f.missing(err)
	}
	b, err := files.Read(path, maxTensors)
	if err != nil {
		return n, w, f.missing(err)
	}
	tensors, about, err := runs.DecodeTensors(b)
	if err != nil {
		return n, w, f.missing(fmt.Errorf("%s: %w", path, err))
	}
	d, err := policy.DefinitionOf(f.policy.Name, made)
	if err != nil {
		return n, w, err
	}
	learner, err := learnerOf(f.parts)
	if err != nil {
		return n, w, err
	}
	state, err := learner.FromTensors(d.Network, tensors)
	if err != nil {
		return n, w, &table.Error{Code: policy.CodeNetwork, Reason: fmt.Sprintf("policy %q: %s: %v", f.policy.Name, path, err),
			Help: "names and shapes are those of rlhost export --format safetensors: write [policy] as it was when the file was written"}
	}
	n, w, err = learner.Weights(state)
	if version, wrong := strconv.ParseUint(about["policy_version"], 10, 64); wrong == nil {
		w.Version = version
	}
	return n, w, err
}

func (f *finder) missing(err error) error {
	return &table.Error{Code: "E012", Reason: fmt.Sprintf("policy %q: %v", f.policy.Name, err), Help: graph.HelpStored, Err: err}
}

// movedFrom returns a policy's from as a file in another folder would give it.
func movedFrom(dir string, g *graph.Graph, from string) (string, error) {
	if from == "" || filepath.IsAbs(from) {
		return from, nil
	}
	path := filepath.Join(g.Dir, from)
	if _, err := os.Stat(path); err != nil { // it is a run's name, or gone
		return from, nil
	}
	return files.Relative(dir, path)
}
