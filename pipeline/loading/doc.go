// Package loading loads the environments of a checked graph, and makes the policies for them.
//
//	set, err := loading.Load(ctx, g, parts, &cache, report)
//	plugin := set.Envs["cartpole"].Plugin
//	err = cache.Close()
//
// It knows nothing of running graphs: a graph that will replace another is loaded from the same Cache, which has the
// environments that both use. Package fit checks that the loaded parts fit together.
package loading
