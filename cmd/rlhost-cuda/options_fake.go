//go:build fakecuda

package main

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/gpu/cuda"
	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/cuda/fake"
)

// options is of the program that tests build: with RLHOST_CUDA_DRIVER=fake its driver is the one in Go, with the options after a
// question mark, as in fake?version=11080&memory=4096.
func options() cuda.Options {
	query, ok := strings.CutPrefix(os.Getenv("RLHOST_CUDA_DRIVER"), "fake")
	if !ok {
		return cuda.Options{}
	}
	o := fake.Options{Seed: 1}
	if err := set(&o, strings.TrimPrefix(query, "?")); err != nil {
		return cuda.Options{Driver: func() (*driver.Table, error) { return nil, fmt.Errorf("RLHOST_CUDA_DRIVER: %w", err) }}
	}
	if visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set && visible == "" {
		o.Devices = -1 // as NVIDIA's driver has it
	}
	d := fake.New(o)
	return cuda.Options{Driver: func() (*driver.Table, error) { return driver.Bind(d.Lookup) }}
}

// set sets the options that a query names.
func set(o *fake.Options, query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return err
	}
	numbers := map[string]*int{"version": &o.Version, "memory": &o.Memory, "capability": &o.Capability, "launches": &o.Launches}
	for name := range values {
		to := numbers[name]
		if to == nil {
			return fmt.Errorf("%q is no option of the driver in Go", name)
		}
		if *to, err = strconv.Atoi(values.Get(name)); err != nil {
			return err
		}
	}
	return nil
}
