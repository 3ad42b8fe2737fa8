// Package graph turns a TOML file into a checked graph of components.
//
//	g, err := graph.Parse("pipeline.toml", src, graph.ParseOptions{Parts: parts, Sets: sets})
//	fmt.Print(err) // every error, with file, line and column
//
// Parse does everything that needs no plugin: it reads the files that the file extends, puts variables of the environment
// into texts, expands the preset that [train] names, merges the tables of the file over it key by key, applies --set
// arguments, makes the components of further policies that act in the preset's rollout, lets each component decode and
// check its own table, resolves the wires, and rejects graphs that would stall. Only a preset that suits the actions of
// its environment has that loaded.
// Graph.Expanded is the same graph as a file without presets and defaults; Graph.Draw shows it as a list or a picture;
// Graph.TableChanges and Reasons say how two graphs differ.
//
// BurntSushi/toml decodes the files. It reports no positions, so a scanner of our own finds every key and value
// again (scan.go) and the two are paired, node by node (node.go); fuzzing checks that they agree.
//
// It knows wiring, not work: which kinds of components, environments and policies exist is in the program's Parts.
// Package pipeline runs a graph.
package graph
