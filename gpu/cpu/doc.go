// Package cpu computes policies on the processor: the embedded default backend. Control code is plain Go over the
// kernels of internal/kern, of which the fastest set that the machine has is picked at start (AVX-512, AVX2 with
// FMA, plain Go); no C, no files besides the binary.
//
//	b := cpu.New()
//	actor, err := policy.NewActor(b, &network, 64)
//	err = actor.Load(weights)
//	err = actor.Act(requests)   // reads observations where they lie, writes actions where they belong
//	learner, err := ppo.NewLearner(b, &network, policy.Init(&network, seed), ppo.Defaults())
//	stats, err := learner.Update(dataset, rates)
//
// Acting reads observations in place by their strides; only with NormalizeObs it keeps a normalised copy of a
// block of rows. Learning makes one copy, the gather of a shuffled minibatch, counted in ppo.Stats.
//
// Results are bit-equal from run to run within one kernel set; the two vector sets agree in every bit. A row's outputs
// depend on nothing but the row and the weights. An actor or a learner computes on its caller's goroutine; neither
// allocates once it has seen its largest input.
package cpu
