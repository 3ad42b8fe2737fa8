package runs

import (
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/core/component"
)

// BenchmarkSave saves three vectors, as of a learner with Adam; most of the time is the disk's.
func BenchmarkSave(b *testing.B) {
	for _, params := range []int{9 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("params=%d", params), func(b *testing.B) {
			r, err := Create(b.TempDir(), "bench")
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			tensors := make(map[string]component.Tensor)
			for _, name := range []string{"params", "adam_m", "adam_v"} {
				tensors[name] = component.Tensor{Shape: []int{params}, Data: make([]float32, params)}
			}
			c := Checkpoint{Components: map[string]component.State{"learner": {Tensors: tensors}}}
			b.SetBytes(int64(3 * 4 * params))
			for b.Loop() {
				c.PolicyVersion++
				if err := r.Save(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkParamsHash hashes a vector of a million parameters.
func BenchmarkParamsHash(b *testing.B) {
	v := make([]float32, 1<<20)
	b.SetBytes(4 << 20)
	for b.Loop() {
		ParamsHash(v)
	}
}
