package fit

import (
	"cmp"
	"fmt"
	"slices"
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
func (l *Loaded) Forecast() []Need {
	var needs []Need
	for _, x := range l.parts {
		for _, n := range []Need{l.trajectories(x), kept(x), datasets(x), l.weights(x)} {
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

func (l *Loaded) trajectories(x *part) Need {
	if x.schema == nil {
		return Need{}
	}
	blocks := x.Flow.Blocks
	if l.graph.Synchronous {
		blocks = x.Flow.Splits
	}
	return Need{fmt.Sprintf("component.%s.horizon = %d, envs = %d, blocks = %d", x.Name, x.schema.Shape.Steps, x.Flow.Envs, blocks/x.Flow.Splits),
		footprint(blocks, x.schema.Bytes)}
}

// kept is what the environments of a component keep besides its blocks.
func kept(x *part) Need {
	if x.plugin == nil || x.Flow.Splits == 0 {
		return Need{}
	}
	return Need{fmt.Sprintf("component.%s.envs = %d, env.%s.wrap", x.Name, x.Flow.Envs, x.Env),
		int64(x.Flow.Splits) * env.KeptBytes(x.plugin, x.Flow.Envs/x.Flow.Splits)}
}

func datasets(x *part) Need {
	if x.Flow.DatasetRows == 0 {
		return Need{}
	}
	return Need{fmt.Sprintf("component.%s.dataset_rows = %d", x.Name, x.Flow.DatasetRows),
		footprint(component.DatasetBlocks, trajectory.DatasetBytes(x.Flow.DatasetRows))}
}

// weights is the memory of a component that publishes its policy: a version for each reader and each message to a reader, and
// three more.
func (l *Loaded) weights(x *part) Need {
	p, ok := x.policy.(component.Weighed)
	if !ok || x.publishes == "" {
		return Need{}
	}
	return Need{"policy." + x.Policy + ".net", footprint(component.WeightBlocks(l.graph.Readers(x.Name, x.publishes)), p.WeightBytes())}
}

// footprint is 0 where no arena can be made: the component says why when it starts.
func footprint(blocks, blockBytes int) int64 {
	n, err := arena.Footprint(blocks, blockBytes)
	if err != nil {
		return 0
	}
	return n
}

// networks returns the least that instances keep, in memory of their own, to act with policies and to learn them.
func (l *Loaded) networks() (needs []Need) {
	for _, x := range l.parts {
		p, ok := x.policy.(component.Sized)
		if !ok {
			continue
		}
		keys := fmt.Sprintf("policy.%s.net in component.%s", x.Policy, x.Name)
		switch {
		case x.publishes != "":
			needs = append(needs, Need{keys, int64(x.Count) * p.LearningBytes()})
		case x.follows:
			needs = append(needs, l.acting(x, Need{keys, p.ActingBytes()}))
		}
	}
	return needs
}

// acting is what instances keep that act with a policy. Of one whose versions are drawn they keep several, each with its weights.
func (l *Loaded) acting(x *part, version Need) Need {
	if l.graph.Policy(x.Policy).Role() == graph.Pool && x.Flow.Versions > 1 {
		version.Keys = fmt.Sprintf("component.%s.versions = %d, policy.%s.net", x.Name, x.Flow.Versions, x.Policy)
		if w, ok := x.policy.(component.Weighed); ok {
			version.Bytes += int64(w.WeightBytes())
		}
		version.Bytes *= int64(x.Flow.Versions)
	}
	version.Bytes *= int64(x.Count)
	return version
}

// checkMemory checks that there is the memory that the arenas take, and the networks.
func (l *Loaded) checkMemory(limit int64, whose string, c *graph.Report) {
	shared := l.Forecast()
	all := append(slices.Clone(shared), l.networks()...)
	slices.SortStableFunc(all, byBytes)
	const help = "lower these keys, the first one most, or run it where there is more"
	switch {
	case limit == 0:
	case Total(shared) > limit:
		c.Add("E044", l.firstEnv(), help, "%s is more than %s, %s", ForecastText(shared), whose, sizeText(limit))
	case Total(all) > limit:
		c.Add("E044", l.firstEnv(), help, "%s at least is more than %s, %s", needsText(all), whose, sizeText(limit))
	}
}

// checkArenas checks that there are enough names for the arenas.
func (l *Loaded) checkArenas(c *graph.Report) {
	arenas, largest, most := 0, 0, ""
	for _, x := range l.parts {
		n := x.Count * x.arenas
		if arenas += n; n > largest {
			largest, most = n, x.Name
		}
	}
	if arenas > hostabi.MaxArena {
		c.Add("E045", l.firstEnv(), fmt.Sprintf("lower count of component %q: an instance with more envs does the same", most),
			"the components have %d signals that carry blocks, each with an arena of its own: there can be %d", arenas, hostabi.MaxArena)
	}
}

// firstEnv is the place of what concerns all components.
func (l *Loaded) firstEnv() graph.Span {
	if len(l.graph.Envs) == 0 {
		return graph.Span{}
	}
	return l.graph.Envs[0].UseAt
}

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
