// Package cuda computes policies on NVIDIA's GPUs, with the kernels of gpu/cuda/kernels through gpu/cuda/driver: no C compiler
// to build it, and on the machine that runs it nothing but NVIDIA's driver.
//
//	b := cuda.New(cuda.Options{})
//	actor, err := policy.NewActor(b, &network, 1024)   // opens the device: ErrNoDriver, ErrOldDriver, ErrNoDevice of package driver
//	learner, err := ppo.NewLearner(b, &network, policy.Init(&network, seed), ppo.Defaults())
//	stats, err := learner.Update(dataset, rates)
//
// Acting in float32 gives the bits of gpu/cpu's vector kernels, but for convolutions that gpu/cpu computes in tiles; learning gives
// the same bits on every device, as no sum depends on how many multiprocessors there are. A row's outputs depend on nothing but the
// row and the weights.
//
// An actor copies the rows of a call into pinned memory, with whatever strides they have, and submits one copy, the network's
// launches and one copy back. A learner has a dataset copied once, vectors of observations straight from their blocks where Watch
// knows these; the launches of all epochs are submitted without waiting, and whether an update still continues is told on the
// device. Neither allocates once it has seen its largest input.
//
// Nothing of this was measured on hardware: tests run over package fake, and over NVIDIA's driver where RLHOST_CUDA_DRIVER names it.
package cuda
