package graph

// With returns the graph with overrides as --set takes them, checked like a file. Problems are those of the overrides
// and of what they lead to; the graph is nil if there is an error among them.
func (g *Graph) With(sets []string, parts *Parts) (*Graph, Problems) {
	return Parse(g.File, []byte(g.Expanded()), ParseOptions{Sets: sets, Parts: parts, Dir: g.Dir})
}
