package cpu_test

import (
	"testing"

	"github.com/rlhost/rlhost/gpu/cpu"
	"github.com/rlhost/rlhost/gpu/policy/policytest"
)

func TestBackendWithEveryKernelSet(t *testing.T) {
	for _, name := range []string{"generic", "avx2", "avx512"} {
		t.Run(name, func(t *testing.T) {
			b, err := cpu.NewWith(name)
			if err != nil {
				t.Skip(err)
			}
			policytest.TestBackend(t, b, policytest.Float32)
		})
	}
}
