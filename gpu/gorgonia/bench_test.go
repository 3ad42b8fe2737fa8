package gorgonia

import (
	"fmt"
	"testing"

	"github.com/rlhost/rlhost/gpu/policy"
)

func BenchmarkGraph(b *testing.B) {
	n := policy.Network{Obs: 4, Actions: 2, Hidden: []int{64, 64}, Activation: policy.Tanh}
	params := randomParams[float32](n.ParamCount(), 1)
	for _, rows := range []int{16, 64, 256, 1024} {
		for _, loss := range []Loss{nil, PPOLoss} {
			b.Run(fmt.Sprintf("rows=%d/grad=%v", rows, loss != nil), func(b *testing.B) {
				m, err := newModel(n, MLP{})
				if err != nil {
					b.Fatal(err)
				}
				m = m.learning(loss, policy.Defaults())
				p, err := compile(m, params, rows)
				if err != nil {
					b.Fatal(err)
				}
				fill(p, m, 1)
				b.ReportAllocs()
				for b.Loop() {
					if err := p.run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
