// Package envcheck checks that an environment keeps the promises of the environment ABI: its values lie in its spaces,
// the same seed gives the same trace, environments do not share random numbers, episodes end by the autoreset mode, and
// a snapshot gives the same future.
//
//	for _, r := range envcheck.Run(ctx, plugin, envcheck.Options{Steps: 1000}) {
//		fmt.Println(r.ID, r.Verdict, r.Title, r.Detail)
//	}
//
// It drives core/env's Env and knows no runtime. The identifiers of checks are stable.
package envcheck
