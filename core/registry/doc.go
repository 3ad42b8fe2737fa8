// Package registry keeps names: short values under paths, which programs of one user add, wait for, watch and delete, so that they find
// each other's runs, components, channels and stores.
//
//	names := registry.NewMemory(registry.Limits{})
//	kept, err := registry.Keep(ctx, names, "runs/cartpole/socket", path, registry.Options{TTL: 5 * time.Second})
//	defer kept.Close(ctx)
//
//	value, err := registry.Wait(ctx, names, "runs/cartpole/socket") // elsewhere, before or after
//	for event, err := range names.Watch(ctx, "runs") { ... }
//
// A name is parts joined by "/": user/experiment/trial/worker. It can have a value and names below it. A name with a TTL ends by itself
// unless it is renewed, so that the name of a dead process is gone within its TTL. SRL's name_resolve has the same calls.
//
// Memory is the back end in this process; package remote serves one to other processes.
package registry
