package gorgonia_test

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/gpu/gorgonia"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
)

func TestBackend(t *testing.T) {
	tolerance := policytest.Float32
	tolerance.Allocates = true // gorgonia's machine does, some hundred times a run
	policytest.TestBackend(t, gorgonia.New(), tolerance)
}

func TestBackend_SaysWhatItRunsOn(t *testing.T) {
	b := gorgonia.New()
	if b.Name() != "gorgonia" || !strings.HasPrefix(b.Kernels(), "gonum-") {
		t.Errorf("Name = %q, Kernels = %q, want gorgonia and gonum-…", b.Name(), b.Kernels())
	}
}
