// Package pipeline turns a TOML file into a checked graph of components and the graph into a running pipeline.
//
//	g, problems := pipeline.Parse("pipeline.toml", src, pipeline.ParseOptions{Parts: parts, Sets: sets})
//	p, err := pipeline.Build(ctx, g, pipeline.BuildOptions{Parts: parts})
//	reason, err := p.Run(ctx)
//
// It knows wiring, not work: which kinds of components, environments and policies exist is in the Parts that
// the program hands over, and each component decodes and checks its own table. No plugin is imported here.
package pipeline
