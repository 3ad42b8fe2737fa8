package reduce_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/rlhost/rlhost/core/reduce"
)

// together calls do for each seat at the same time.
func together(seats int, do func(seat int)) {
	var all sync.WaitGroup
	for i := range seats {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// All seats get the sum in the order of seats, bit for bit, however long vectors are, and the numbers of all.
func TestSum_IsInTheOrderOfSeats(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for seats := 1; seats <= 5; seats++ {
		team := reduce.New(seats)
		for _, length := range []int{0, 1, 2, 7, 1000, 3} {
			vectors := make([][]float32, seats)
			want := make([]float32, length)
			for i := range vectors {
				for k := range length {
					x := float32(random.NormFloat64() * math.Pow(10, float64(random.IntN(8))))
					vectors[i] = append(vectors[i], x)
					want[k] += x
				}
			}
			numbers, sums := make([][][]float64, seats), make([][]float32, seats)
			together(seats, func(i int) {
				sum, all, err := team.Seat(i).Sum(vectors[i], []float64{float64(i), float64(length)})
				if err != nil {
					t.Errorf("seat %d: %v", i, err)
				}
				numbers[i], sums[i] = all, sum
			})
			for i := range seats {
				if !slices.Equal(sums[i], want) {
					t.Errorf("%d seats, %d elements: seat %d has another sum", seats, length, i)
				}
				for k := range seats {
					if !slices.Equal(numbers[i][k], []float64{float64(k), float64(length)}) {
						t.Errorf("%d seats: seat %d has %v as the numbers of seat %d", seats, i, numbers[i][k], k)
					}
				}
			}
		}
	}
}

// Shares cover all units once and differ by one at most.
func TestShare(t *testing.T) {
	for seats := 1; seats <= 7; seats++ {
		team := reduce.New(seats)
		for n := range 40 {
			at := 0
			for i := range seats {
				lo, hi := team.Seat(i).Share(n)
				if lo != at || hi-lo < n/seats || hi-lo > (n+seats-1)/seats {
					t.Errorf("share of seat %d of %d in %d units is %d to %d", i, seats, n, lo, hi)
				}
				at = hi
			}
			if at != n {
				t.Errorf("%d seats share %d of %d units", seats, at, n)
			}
		}
	}
}

// A seat may leave at any moment: then every other one has got the same sums. After Gather all sum again.
func TestLeave_EndsASumForAllOrNone(t *testing.T) {
	const seats, length, most = 3, 64, 40
	why := errors.New("its process has died")
	random := rand.New(rand.NewPCG(3, 4))
	team := reduce.New(seats)
	for round := range 300 {
		team.Gather()
		leaver, after := random.IntN(seats), random.IntN(most)
		done := make([]int, seats)
		together(seats+1, func(i int) {
			if i == seats { // at no special moment
				for range random.IntN(20_000) {
				}
				team.Seat(leaver).Leave(why)
				return
			}
			for ; done[i] < most; done[i]++ {
				vector := slices.Repeat([]float32{float32(done[i])}, length)
				if i == leaver && done[i] == after {
					team.Seat(i).Leave(why)
				}
				sum, _, err := team.Seat(i).Sum(vector, nil)
				if err != nil {
					if !errors.Is(err, reduce.ErrLost) || !errors.Is(err, why) {
						t.Errorf("seat %d: %v", i, err)
					}
					return
				}
				if want := float32(seats * done[i]); sum[0] != want || sum[length-1] != want {
					t.Errorf("seat %d: sum %d is %v", i, done[i], sum[0])
				}
			}
		})
		for i := range seats {
			if done[i] != done[0] {
				t.Fatalf("round %d: seats have got %v sums", round, done)
			}
		}
	}
}

// Vectors of different lengths are an error of all.
func TestSum_RefusesUnequalVectors(t *testing.T) {
	team := reduce.New(2)
	together(2, func(i int) {
		if _, _, err := team.Seat(i).Sum(make([]float32, 3+i), nil); !errors.Is(err, reduce.ErrLost) {
			t.Errorf("seat %d: %v", i, err)
		}
	})
}

func TestSum_DoesNotAllocate(t *testing.T) {
	team := reduce.New(2)
	const sums = 200
	vectors, numbers := [2][]float32{make([]float32, 500), make([]float32, 500)}, make([]float64, 7)
	run := func(i int) {
		for range sums {
			if _, _, err := team.Seat(i).Sum(vectors[i], numbers); err != nil {
				t.Error(err)
			}
		}
	}
	together(2, run)
	if n := testing.AllocsPerRun(5, func() { together(2, run) }); n > 20 {
		t.Errorf("%v allocations in %d sums", n, sums)
	}
}

func BenchmarkSum(b *testing.B) {
	for _, length := range []int{5_000, 300_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			team := reduce.New(2)
			vectors := [2][]float32{make([]float32, length), make([]float32, length)}
			together(2, func(i int) {
				for range b.N {
					team.Seat(i).Sum(vectors[i], nil)
				}
			})
		})
	}
}
