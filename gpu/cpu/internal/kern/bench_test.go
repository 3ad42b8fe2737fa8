package kern

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkGemm reports the rate of products as the passes make them; best is the fastest call of all.
func BenchmarkGemm(b *testing.B) {
	for _, c := range []struct {
		name    string
		m, n, k int
		make    func(g *Gemm)
	}{
		{"first", 96, 128, 4, forward},
		{"hidden", 96, 64, 64, forward},
		{"hidden/row", 1, 64, 64, forward},
		{"weights", 64, 64, 96, weights},
		{"head/weights", 2, 64, 96, weights},
		{"wide", 96, 512, 512, forward},
		{"wide/weights", 512, 512, 96, weights},
		{"wide/row", 1, 512, 512, forward},
		{"tile", 96, 16, 256, forward},
	} {
		for _, s := range []Set{AVX512, AVX2} {
			if !s.Supported() {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d×%d×%d/%v", c.name, c.m, c.n, c.k, s), func(b *testing.B) {
				g := &Gemm{M: c.m, N: c.n, K: c.k}
				c.make(g)
				best := time.Hour
				for b.Loop() {
					start := time.Now()
					for range 8 {
						s.Gemm(g)
					}
					best = min(best, time.Since(start)/8)
				}
				b.ReportMetric(2*float64(c.m*c.n*c.k)/float64(best.Nanoseconds()), "best-GF/s")
			})
		}
	}
}

func noise(n int) []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = r.Float32()*2e-3 - 1e-3
	}
	return x
}

// forward is rows of A times packed panels.
func forward(g *Gemm) {
	g.A, g.ARow, g.ACol = noise(g.M*(g.K|Panel)), g.K|Panel, 1
	g.B, g.BRow, g.BPanel = noise(g.K*g.N), Panel, g.K*Panel
	g.C, g.CRow, g.CPanel = noise(g.M*(g.N+Panel)), g.N+Panel, Panel
	g.Bias = noise(g.N)
}

// weights is columns of A times rows of B, into panels.
func weights(g *Gemm) {
	g.A, g.ARow, g.ACol = noise((g.M+Panel)*g.K), 1, g.M+Panel
	g.B, g.BRow, g.BPanel = noise(g.K*(g.N+Panel)), g.N+Panel, Panel
	g.C, g.CRow, g.CPanel = noise(g.M*g.N), Panel, g.M*Panel
	g.Add = true
}
