package ring

import (
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

func BenchmarkSPSC_PutGet(b *testing.B) {
	out, in := heapSPSC(b, 1024)
	var one [1]hostabi.Message
	for b.Loop() {
		out.Put(one[:])
		in.Get(one[:])
	}
}
