package loading

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rlhost/rlhost/pipeline/graph"
)

// codeStacks is the code of policies that stack other frames than the wrapper of their environment says.
const codeStacks = "E022"

// checkStacks checks that a policy says nothing else than the wrapper of its environment that sets its frames.
func checkStacks(g *graph.Graph, c *graph.Report) {
	for i := range g.Policies {
		p := &g.Policies[i]
		e := g.Env(p.Env)
		if p.Of != "" || e == nil || len(e.Table.Wrap) == 0 {
			continue
		}
		last := len(e.Table.Wrap) - 1
		frames, ok := e.Table.Wrap[last][graph.KeyStack]
		if !ok {
			continue
		}
		table := p.Plain()
		differs := func(key string, n any) {
			if n != nil && n != frames {
				c.Add(codeStacks, p.Place(key), "leave one of the two out", "policy %q: `%s` is %v, and the wrapper of env %q says %v frames (%v)",
					p.Name, key, n, e.Name, frames, e.Place(fmt.Sprintf("wrap[%d].%s", last, graph.KeyStack)))
			}
		}
		differs(graph.KeyStack, table[graph.KeyStack])
		encoders, _ := table["encoder"].(map[string]any)
		for _, pattern := range slices.Sorted(maps.Keys(encoders)) {
			if encoder, ok := encoders[pattern].(map[string]any); ok {
				differs("encoder."+pattern+".stack", encoder["stack"])
			}
		}
	}
}
