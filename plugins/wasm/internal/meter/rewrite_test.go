package meter

import (
	"bytes"
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
)

func TestRewrite_GuestsBehaveTheSame(t *testing.T) {
	for name, code := range guests(t) {
		t.Run(name, func(t *testing.T) {
			r := newWazero(t, wazero.NewRuntimeConfig())
			result := rewrite(t, code)
			if result.State != "" {
				t.Errorf("State = %q, want none", result.State)
			}
			t.Logf("%d bytes become %d, %d globals", len(code), len(result.Code), result.Globals)
			want := start(t, r, code, 16).play(600)
			got := start(t, r, result.Code, 16).play(600)
			if !bytes.Equal(got, want) {
				t.Error("the rewritten guest writes other bytes")
			}
		})
	}
}

// BenchmarkMetering steps a guest, original and metered, in turns, and reports the ratio of their times.
func BenchmarkMetering(b *testing.B) {
	for name, code := range guests(b) {
		for _, n := range []uint32{1, 64, 1024} {
			b.Run(name+"/envs="+strconv.Itoa(int(n)), func(b *testing.B) { benchmarkMetering(b, code, n) })
		}
	}
}

func benchmarkMetering(b *testing.B, code []byte, n uint32) {
	r := newWazero(b, wazero.NewRuntimeConfig())
	plain, metered := start(b, r, code, n), start(b, r, rewrite(b, code).Code, n)
	ctx := context.Background()
	calls := 1 + 20_000/int(n)
	lap := func(g *guest) time.Duration {
		var stack [4]uint64
		begin := time.Now()
		for range calls {
			stack[0], stack[1] = 0, 0
			if err := g.step.CallWithStack(ctx, stack[:]); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(begin)
	}
	best := [2]time.Duration{1 << 62, 1 << 62}
	k := uint64(0)
	for b.Loop() {
		plain.act(k)
		metered.act(k)
		k++
		best[0] = min(best[0], lap(plain))
		best[1] = min(best[1], lap(metered))
	}
	b.ReportMetric(float64(best[1])/float64(best[0]), "metered/plain")
	b.ReportMetric(float64(best[0].Nanoseconds())/float64(calls)/float64(n), "ns/env")
}

func TestReadLines_FindsTheLineOfAnAddress(t *testing.T) {
	l := ReadLines(debugLine(100))
	for at, want := range map[uint32]bool{0: false, 1: true, 99: true, 101: false} {
		if file, line, ok := l.At(at); ok != want || ok && (file != "code" || line != 1) {
			t.Errorf("At(%d) = %q, %d, %t; want one: %t", at, file, line, ok, want)
		}
	}
}
