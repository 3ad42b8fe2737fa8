package loading

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Need is the memory that all instances of a component make for one of their signals, or keep of a policy. Shared memory is populated
// when they start, whatever is used of it. Windows of guests are mapped onto it and need none of their own.
type Need struct {
	Keys  string // that decide it, with their values, the one that counts most first
	Bytes int64
}

// String names the keys and the memory.
func (n Need) String() string { return fmt.Sprintf("%s: %s", n.Keys, sizeText(n.Bytes)) }

// Forecast returns what the arenas of a graph will take, the largest first, as far as that is known before components run:
// trajectories, what wrappers keep of steps, lists of datasets, and versions of weights.
func (s *Set) Forecast(g *graph.Graph) []Need {
	var needs []Need
	for i := range g.Components {
		x := &g.Components[i]
		for _, n := range []Need{s.trajectories(g, x), s.kept(x), datasets(x), s.weights(g, x)} {
			if n.Bytes *= int64(x.Count); n.Bytes > 0 {
				if x.Count > 1 {
					n.Keys += fmt.Sprintf(", count = %d", x.Count)
				}
				needs = append(needs, n)
			}
		}
	}
	slices.SortStableFunc(needs, byBytes)
	return needs
}

func byBytes(a, b Need) int { return cmp.Compare(b.Bytes, a.Bytes) }

// Total adds up a forecast.
func Total(needs []Need) (bytes int64) {
	for _, n := range needs {
		bytes += n.Bytes
	}
	return bytes
}

// ForecastText tells a forecast in a line: the sum and the largest parts.
func ForecastText(needs []Need) string { return "shared " + needsText(needs) }

func needsText(needs []Need) string {
	var parts []string
	for _, n := range needs[:min(len(needs), largest)] {
		parts = append(parts, n.String())
	}
	if len(needs) > largest {
		parts = append(parts, "others: "+sizeText(Total(needs[largest:])))
	}
	return fmt.Sprintf("memory %s (%s)", sizeText(Total(needs)), strings.Join(parts, "; "))
}

// largest is how many needs a message names.
const largest = 3

func (s *Set) trajectories(g *graph.Graph, x *graph.Component) Need {
	from, f := s.Envs[x.Env], x.Flow
	if from == nil || f.BlockRows == 0 || f.Splits == 0 || f.Envs < f.Splits {
		return Need{}
	}
	blocks := f.Blocks
	if g.Synchronous {
		blocks = f.Splits
	}
	schema, err := s.schema(g, x)
	if err != nil {
		return Need{} // E042, E052, E054
	}
	table := "component." + x.Name
	return Need{fmt.Sprintf("%s.horizon = %d, envs = %d, blocks = %d", table, schema.Shape.Steps, f.Envs, blocks/f.Splits), footprint(blocks, schema.Bytes)}
}

// schema says how the blocks lie that a component's environments step into; there is at least one in each split.
func (s *Set) schema(g *graph.Graph, x *graph.Component) (*trajectory.Schema, error) {
	from, f := s.Envs[x.Env], x.Flow
	envs := f.Envs / f.Splits
	return trajectory.NewSchema(from.Plugin.Spec(), trajectory.Shape{Steps: f.BlockRows / envs, Envs: envs, Policies: f.ShapePolicies(), Memory: s.memory(g, x),
		Shaped: env.Shapes(from.Plugin), Granted: strings.Join(g.Written(x.Name), " "), Versions: draws(g, &f)})
}

// draws reports whether one of the policies that act is a pool.
func draws(g *graph.Graph, f *component.Flow) bool {
	names := f.Acting()
	return len(names) > 1 && slices.ContainsFunc(names, func(name string) bool {
		p := g.Policy(name)
		return p != nil && p.Role() == graph.Pool
	})
}

// kept is what the environments of a component keep besides its blocks.
func (s *Set) kept(x *graph.Component) Need {
	from, f := s.Envs[x.Env], x.Flow
	if from == nil || f.Splits == 0 {
		return Need{}
	}
	return Need{fmt.Sprintf("component.%s.envs = %d, env.%s.wrap", x.Name, f.Envs, x.Env), int64(f.Splits) * env.KeptBytes(from.Plugin, f.Envs/f.Splits)}
}

// memory returns what the policies of a component's environment, and those that act in it, need of earlier rows: its blocks keep
// that.
func (s *Set) memory(g *graph.Graph, x *graph.Component) (m trajectory.Memory) {
	for i := range g.Policies {
		if p := &g.Policies[i]; x.Keeps(p) && s.Policies[p.Name] != nil {
			m = m.And(s.Policies[p.Name].Memory())
		}
	}
	return m
}

func datasets(x *graph.Component) Need {
	if x.Flow.DatasetRows == 0 {
		return Need{}
	}
	return Need{fmt.Sprintf("component.%s.dataset_rows = %d", x.Name, x.Flow.DatasetRows),
		footprint(component.DatasetBlocks, trajectory.DatasetBytes(x.Flow.DatasetRows))}
}

// weights are those of a component that publishes its policy: a version for each reader, those on their way to it included, and
// three more.
func (s *Set) weights(g *graph.Graph, x *graph.Component) Need {
	p, ok := s.Policies[x.Policy].(component.Weighed)
	if !ok {
		return Need{}
	}
	for _, port := range x.Manifest.Signals {
		if !component.PayloadOf(port.Payload).Publishes {
			continue
		}
		blocks := component.WeightBlocks(g.Readers(x.Name, port.Name))
		return Need{"policy." + x.Policy + ".net", footprint(blocks, p.WeightBytes())}
	}
	return Need{}
}

// networks returns the least that instances keep, in memory of their own, to act with policies and to learn them.
func (s *Set) networks(g *graph.Graph) (needs []Need) {
	for i := range g.Components {
		x := &g.Components[i]
		p, ok := s.Policies[x.Policy].(component.Sized)
		if !ok {
			continue
		}
		publishes := func(p component.Port) bool { return component.PayloadOf(p.Payload).Publishes }
		keys := fmt.Sprintf("policy.%s.net in component.%s", x.Policy, x.Name)
		switch {
		case slices.ContainsFunc(x.Manifest.Signals, publishes):
			needs = append(needs, Need{keys, int64(x.Count) * p.LearningBytes()})
		case slices.ContainsFunc(x.Manifest.Slots, publishes):
			needs = append(needs, s.acting(g, x, Need{keys, p.ActingBytes()}))
		}
	}
	return needs
}

// acting is what instances keep that act with a policy. Of one whose versions are drawn they keep several, each with its weights.
func (s *Set) acting(g *graph.Graph, x *graph.Component, version Need) Need {
	if g.Policy(x.Policy).Role() == graph.Pool && x.Flow.Versions > 1 {
		version.Keys = fmt.Sprintf("component.%s.versions = %d, policy.%s.net", x.Name, x.Flow.Versions, x.Policy)
		if w, ok := s.Policies[x.Policy].(component.Weighed); ok {
			version.Bytes += int64(w.WeightBytes())
		}
		version.Bytes *= int64(x.Flow.Versions)
	}
	version.Bytes *= int64(x.Count)
	return version
}

// footprint is 0 where no arena can be made: the component says why when it starts.
func footprint(blocks, blockBytes int) int64 {
	n, err := arena.Footprint(blocks, blockBytes)
	if err != nil {
		return 0
	}
	return n
}

// checkNeeds checks that the machine has the memory that the arenas take, and that there are enough names for them.
func (s *Set) checkNeeds(g *graph.Graph, parts *graph.Parts, c *graph.Report) {
	at := graph.Span{}
	if len(g.Envs) > 0 {
		at = g.Envs[0].UseAt
	}
	limit, whose := parts.Memory, "the limit"
	if limit == 0 {
		limit, whose = machineMemory()
	}
	shared := s.Forecast(g)
	all := append(slices.Clone(shared), s.networks(g)...)
	slices.SortStableFunc(all, byBytes)
	const help = "lower these keys, the first one most, or run it where there is more"
	switch {
	case limit == 0:
	case Total(shared) > limit:
		c.Add("E044", at, help, "%s is more than %s, %s", ForecastText(shared), whose, sizeText(limit))
	case Total(all) > limit:
		c.Add("E044", at, help, "%s at least is more than %s, %s", needsText(all), whose, sizeText(limit))
	}
	arenas, most := 0, ""
	for i, largest := 0, 0; i < len(g.Components); i++ {
		x := &g.Components[i]
		n := 0
		for _, port := range x.Manifest.Signals {
			if component.PayloadOf(port.Payload).Block {
				n += x.Count
			}
		}
		if arenas += n; n > largest {
			largest, most = n, x.Name
		}
	}
	if arenas > hostabi.MaxArena {
		c.Add("E045", at, fmt.Sprintf("lower count of component %q: an instance with more envs does the same", most),
			"the components have %d signals that carry blocks, each with an arena of its own: there can be %d", arenas, hostabi.MaxArena)
	}
}

// machineMemory returns how much memory this process may take at most, 0 where that is not known, and who says so.
func machineMemory() (bytes int64, whose string) {
	text, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 53)
			bytes, whose = kib<<10, "the memory of the machine"
		}
	}
	text, _ = os.ReadFile("/proc/self/cgroup")
	_, group, found := strings.Cut(string(text), "0::")
	group, _, _ = strings.Cut(group, "\n")
	for ; found && group != ""; group = path.Dir(group) {
		text, _ := os.ReadFile(path.Join("/sys/fs/cgroup", group, "memory.max"))
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && (bytes == 0 || n < bytes) {
			bytes, whose = n, "the limit of control group "+group
		}
		if group == "/" {
			break
		}
	}
	return bytes, whose
}

// sizeText writes bytes in the unit that suits.
func sizeText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
}
