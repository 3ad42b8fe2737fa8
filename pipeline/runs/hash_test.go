package runs

import "testing"

func TestHashesSeeEveryBit(t *testing.T) {
	a := []float32{1, 2, 3}
	if got, want := ParamsHash(a), ParamsHash([]float32{1}, []float32{2, 3}); got != want {
		t.Errorf("a vector in two parts has hash %s, whole %s", want, got)
	}
	// By Python: hashlib.sha256(struct.pack("<3f", 1, 2, 3)).hexdigest().
	const want = "8e628779e6a74ee0b36991c10158f63cafec7d340ad4e075592502c8708524dd"
	if got := ParamsHash(a); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	long := make([]float32, 5000)
	before := ParamsHash(long)
	long[4999] = -long[4999] // -0
	if ParamsHash(long) == before {
		t.Error("0 and -0 have the same hash")
	}
}
