package graph

// With returns the graph with overrides as in --set, checked like a file. Problems are those of the overrides and
// their consequences; the graph is nil if one is an error.
func (g *Graph) With(sets []string, parts *Parts) (*Graph, Problems) {
	return Parse(g.File, []byte(g.Expanded()), ParseOptions{Sets: sets, Parts: parts, Dir: g.Dir})
}
