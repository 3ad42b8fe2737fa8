package gorgonia_test

import (
	"testing"

	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
)

func TestBackend(t *testing.T) {
	tolerance := policytest.Float32
	tolerance.Allocates = true // gorgonia's machine does, some hundred times a run
	policytest.TestBackend(t, gorgonia.New(), tolerance)
}
