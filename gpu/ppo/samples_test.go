package ppo

import "testing"

// The parts of an epoch are as few as minibatches of that size can be, in order, and differ by one row at most; where
// the size divides the rows they are all of that size.
func TestS15MinibatchesAreNearlyEqualParts(t *testing.T) {
	for n := range 300 {
		all := make([]uint32, n)
		for i := range all {
			all[i] = uint32(i)
		}
		for size := 1; size <= n+2; size++ {
			least, most, count, next := n, 0, 0, uint32(0)
			for rows, rest := []uint32(nil), all; len(rest) > 0; count++ {
				rows, rest = NextMinibatch(rest, size)
				least, most = min(least, len(rows)), max(most, len(rows))
				for _, row := range rows {
					if row != next {
						t.Fatalf("%d rows of %d: row %d follows %d", n, size, row, int(next)-1)
					}
					next++
				}
			}
			if next != uint32(n) || count != (n+size-1)/size || most > size || n > 0 && most-least > 1 {
				t.Fatalf("%d rows in minibatches of at most %d: %d of %d to %d rows, %d in all", n, size, count, least, most, next)
			}
			if n%size == 0 && n > 0 && least != size {
				t.Fatalf("%d rows in minibatches of %d, which divides them: one has %d", n, size, least)
			}
		}
	}
}
