package arena

import (
	"fmt"
	"testing"
)

// benchArena is mapped where the system allows it, as in a run.
func benchArena(b *testing.B, blocks int) *Arena {
	b.Helper()
	a, err := New(Config{ID: 7, Name: "bench", Blocks: blocks, BlockBytes: 4096})
	ok(b, err)
	b.Cleanup(func() { ok(b, a.Close()) })
	return a
}

func BenchmarkCycle(b *testing.B) {
	for _, blocks := range []int{16, 1024, 16384} {
		b.Run(fmt.Sprintf("blocks=%d", blocks), func(b *testing.B) {
			a := benchArena(b, blocks)
			b.ReportAllocs()
			for b.Loop() {
				l, _ := a.Loan()
				h, _ := l.Commit()
				lease, _ := a.Lease(h)
				_ = a.Release(h)
				_ = lease.Release()
			}
		})
	}
}

func BenchmarkCycle_Credit(b *testing.B) {
	a := benchArena(b, 16)
	credits := 0
	a.OnFree(3, func(uint32) { credits++ })
	b.ReportAllocs()
	for b.Loop() {
		l, _ := a.LoanBlock(3)
		h, _ := l.Commit()
		lease, _ := a.Lease(h)
		_ = a.Release(h)
		_ = lease.Release()
	}
	if credits == 0 {
		b.Error("no credits")
	}
}

func BenchmarkCycle_Parallel(b *testing.B) {
	a := benchArena(b, 1024)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l, err := a.Loan()
			if err != nil {
				b.Error(err)
				return
			}
			h, _ := l.Commit()
			_ = a.Release(h)
		}
	})
}

func BenchmarkLeaseRelease(b *testing.B) {
	a := benchArena(b, 16)
	h := commit(b, a)
	b.ReportAllocs()
	for b.Loop() {
		lease, _ := a.Lease(h)
		_ = lease.Release()
	}
	ok(b, a.Release(h))
}

func BenchmarkLoan_LastFreeBlock(b *testing.B) {
	const blocks = 4096
	a := benchArena(b, blocks)
	var loans []Loan
	for range blocks - 1 {
		loans = append(loans, loan(b, a))
	}
	for b.Loop() {
		l, _ := a.Loan()
		_ = l.Abort()
	}
	for _, l := range loans {
		ok(b, l.Abort())
	}
}

func BenchmarkLoan_Exhausted(b *testing.B) {
	const blocks = 1024
	a := benchArena(b, blocks)
	var loans []Loan
	for range blocks {
		loans = append(loans, loan(b, a))
	}
	for b.Loop() {
		_, _ = a.Loan()
	}
	for _, l := range loans {
		ok(b, l.Abort())
	}
}
