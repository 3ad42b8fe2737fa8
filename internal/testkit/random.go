package testkit

import (
	"math/rand/v2"
	"testing"
)

// Random returns random numbers whose seed the test prints.
func Random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
