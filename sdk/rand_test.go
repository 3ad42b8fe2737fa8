package sdk

import "testing"

func TestRand_IsTheStreamOfTheOtherLanguages(t *testing.T) {
	r := NewRand(42)
	if got, want := r.Next(), uint64(0x57e1faba65107204); got != want {
		t.Errorf("first number of seed 42 = %#x, want %#x", got, want)
	}
	if got, want := r.Uniform(-1, 1), float32(0.911493421); got != want {
		t.Errorf("second, as a number from -1 to 1 = %v, want %v", got, want)
	}
	if got, want := r.Below(1000), uint32(486); got != want {
		t.Errorf("third, below 1000 = %d, want %d", got, want)
	}
}

func TestRand_ContinuesFromItsState(t *testing.T) {
	r := NewRand(7)
	r.Next()
	s := RandAt(r.State())
	for i := range 10 {
		if got, want := s.Next(), r.Next(); got != want {
			t.Errorf("number %d = %#x, want %#x", i, got, want)
		}
	}
}

func TestRand_StaysWithinItsBounds(t *testing.T) {
	r := NewRand(1)
	for range 100_000 {
		if v := r.Uniform(2, 3); v < 2 || v > 3 {
			t.Fatalf("Uniform(2, 3) = %v", v)
		}
		if v := r.Below(7); v > 6 {
			t.Fatalf("Below(7) = %d", v)
		}
	}
	if got := r.Below(0); got != 0 {
		t.Errorf("Below(0) = %d", got)
	}
}
