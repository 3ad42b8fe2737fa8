package search

import "math/bits"

// maxSobol is how many keys a Sobol sequence can have here.
const maxSobol = len(directions) + 1

// directions are the primitive polynomials and first direction numbers of dimensions 2 to 21 by S. Joe and F. Y. Kuo, "Constructing Sobol
// sequences with better two-dimensional projections" (2008), their file new-joe-kuo-6.21201.
var directions = [...]struct {
	a uint32 // coefficients of the polynomial between its first and its last
	m []uint32
}{
	{0, []uint32{1}},
	{1, []uint32{1, 3}},
	{1, []uint32{1, 3, 1}},
	{2, []uint32{1, 1, 1}},
	{1, []uint32{1, 1, 3, 3}},
	{4, []uint32{1, 3, 5, 13}},
	{2, []uint32{1, 1, 5, 5, 17}},
	{4, []uint32{1, 1, 5, 5, 5}},
	{7, []uint32{1, 1, 7, 11, 19}},
	{11, []uint32{1, 1, 5, 1, 1}},
	{13, []uint32{1, 1, 1, 3, 11}},
	{14, []uint32{1, 3, 5, 5, 31}},
	{1, []uint32{1, 3, 3, 9, 7, 49}},
	{13, []uint32{1, 1, 1, 15, 21, 21}},
	{16, []uint32{1, 3, 1, 13, 27, 49}},
	{19, []uint32{1, 1, 1, 15, 7, 5}},
	{22, []uint32{1, 3, 1, 15, 13, 25}},
	{25, []uint32{1, 1, 5, 5, 19, 61}},
	{1, []uint32{1, 3, 7, 11, 23, 15, 103}},
	{4, []uint32{1, 3, 7, 13, 13, 15, 69}},
}

// sobolWord is the binary fraction of a number of the sequence in one of its dimensions, in Gray code order as is usual.
func sobolWord(index uint32, dimension int) uint32 {
	gray := index ^ index>>1
	vectors, x := sobolVectors(dimension), uint32(0)
	for ; gray != 0; gray &= gray - 1 {
		x ^= vectors[bits.TrailingZeros32(gray)]
	}
	return x
}

// sobolVectors are the direction numbers of a dimension as binary fractions.
func sobolVectors(dimension int) (v [32]uint32) {
	if dimension == 0 {
		for i := range v {
			v[i] = 1 << (31 - i)
		}
		return v
	}
	d := directions[dimension-1]
	s := len(d.m)
	for i := range v {
		if i < s {
			v[i] = d.m[i] << (31 - i)
			continue
		}
		v[i] = v[i-s] ^ v[i-s]>>s
		for k := 1; k < s; k++ {
			if d.a>>(s-1-k)&1 == 1 {
				v[i] ^= v[i-k]
			}
		}
	}
	return v
}

// sobol takes the points of a Sobol sequence, shifted by the seed so that no key begins at its bound.
type sobol struct{ c *Config }

func (s sobol) Ask(_ *History, _, place int) (Point, error) {
	p := Point{}
	for i, key := range s.c.Keys() {
		shift := uint32(word(s.c.Seed, 0, key) >> 32)
		d := s.c.Space[key]
		p[key] = d.value(float64(sobolWord(uint32(place), i)^shift) / (1 << 32))
	}
	return p, nil
}
