// Package builtin is the literal table of the program's parts: the kinds of components, the runtimes of plugins, the
// backends of policies and the environments. Only listed parts are linked, and nothing else enumerates them.
//
//	parts, engines := builtin.New(builtin.Options{Log: log})
//	defer engines.Close()
//	g, err := graph.Parse(file, text, graph.ParseOptions{Parts: parts})
//
// A kind of component is a row of Kinds, a backend one of backends, an environment one of examples/plugins. Packages that
// run pipelines import none of these: they get a graph.Parts.
package builtin
