package kern

import "fmt"

// Set is a choice of kernels. Results are bit-equal within one set.
type Set uint8

// Sets.
const (
	Generic Set = iota // plain Go
	AVX2               // AVX2 and FMA
	AVX512             // AVX-512 F, BW, DQ, VL
)

var setNames = [...]string{"generic", "avx2", "avx512"}

// String returns the set's name.
func (s Set) String() string { return setNames[s] }

// Supported reports whether this machine can run the set.
func (s Set) Supported() bool { return s <= detect() }

// Detect returns the fastest set that this machine can run.
func Detect() Set { return detect() }

// Parse returns the set of that name, or an error if there is none or this machine cannot run it.
func Parse(name string) (Set, error) {
	for i, n := range setNames {
		if n == name {
			if !Set(i).Supported() {
				return 0, fmt.Errorf("kernels %s: this machine does not have the instructions", name)
			}
			return Set(i), nil
		}
	}
	return 0, fmt.Errorf("kernels %q: want generic, avx2 or avx512", name)
}
