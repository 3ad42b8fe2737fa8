//go:build !fakecuda

package main

import "github.com/rlhost/rlhost/gpu/cuda"

func options() cuda.Options { return cuda.Options{} }
