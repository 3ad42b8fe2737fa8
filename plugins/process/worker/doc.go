// Package worker lets environments run in separate processes: isolated modules of WebAssembly and environments of
// native plugins alike.
//
//	p, err := worker.Load(ctx, runtime, program, worker.Options{Source: env.Source{Use: "CartPole-v1"}, Workers: 2})
//	env, err := p.NewEnv(env.Options{Envs: 64})
//
// Each process of a batch owns some neighbouring environments of the bound blocks and writes there itself. The
// goroutine that calls the batch waits for the processes itself. A process that dies costs its environments the step
// they were in; see env.Fault.
package worker
