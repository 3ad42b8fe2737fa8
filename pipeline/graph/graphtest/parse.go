package graphtest

import "github.com/rlhost/rlhost/pipeline/graph"

// Parse is graph.Parse with all problems in one place: the error's, or the warnings of the graph.
func Parse(file string, src []byte, o graph.ParseOptions) (*graph.Graph, graph.Problems) {
	return problems(graph.Parse(file, src, o))
}

// With is Graph.With in the same way.
func With(g *graph.Graph, sets []string, parts *graph.Parts) (*graph.Graph, graph.Problems) {
	return problems(g.With(sets, parts))
}

func problems(g *graph.Graph, err error) (*graph.Graph, graph.Problems) {
	if err != nil {
		return nil, graph.ProblemsOf(err)
	}
	return g, g.Warnings
}
