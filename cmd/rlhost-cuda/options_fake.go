//go:build fakecuda

package main

import (
	"os"

	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
)

// options is of the program that tests build: with RLHOST_CUDA_DRIVER=fake its driver is the one in Go.
func options() cuda.Options {
	if os.Getenv("RLHOST_CUDA_DRIVER") != "fake" {
		return cuda.Options{}
	}
	o := fake.Options{Seed: 1}
	if visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set && visible == "" {
		o.Devices = -1 // as NVIDIA's driver has it
	}
	d := fake.New(o)
	return cuda.Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }}
}
