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

// Scripts plays n scripts of 40 random bytes and up to most more. The test ends at the first that fails, with its seed.
func Scripts(t *testing.T, n, most int, play func(t *testing.T, script []byte)) {
	t.Helper()
	for range n {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		script := make([]byte, 40+random.IntN(most))
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		if play(t, script); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
