//go:build !linux

package main

import (
	"os/exec"
	"testing"
)

const gatedProgram = "gated"

func beGated() {}

// gate is there on Linux alone.
type gate struct{}

func (*gate) on(func(pid int, operation string)) {}

func gated(*testing.T, *workshop, *exec.Cmd) (start func() *gate) { return func() *gate { return nil } }

func canGate(t *testing.T) {
	t.Helper()
	t.Skip("stops a program at its system calls, which needs Linux")
}
