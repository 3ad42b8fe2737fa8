// Package loading loads what a checked graph names: environments, and the policies made for them.
//
//	set, err := loading.Load(ctx, g, parts, &cache, report)
//	plugin := set.Envs["cartpole"].Plugin
//	err = cache.Close()
//
// It knows nothing of what runs: a graph that will replace another is loaded from the same Cache, which has the
// environments that both use. Whether what it has loaded fits together is the question of package fit.
package loading
