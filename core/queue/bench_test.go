package queue

import (
	"testing"
)

func BenchmarkMPMC_PutGet(b *testing.B) {
	q := heapQueue(b, 1024, 16)
	put, get := q.As(1), q.As(2)
	item, buf := Item{Payload: make([]byte, 16)}, make([]byte, 16)
	for b.Loop() {
		if err := put.Put(item, 0); err != nil {
			b.Fatal(err)
		}
		if _, err := get.Get(buf, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMPMC_PutManyGetMany(b *testing.B) {
	q := heapQueue(b, 1024, 16)
	put, get := q.As(1), q.As(2)
	items, got := Items(32, 16), Items(32, 16)
	for i := range items {
		items[i].Payload = items[i].Payload[:16]
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := put.PutMany(items, 0); err != nil {
			b.Fatal(err)
		}
		if n, err := get.GetMany(got, 0); err != nil || n != 32 {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/message")
}
