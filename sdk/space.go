package sdk

// Space describes the elements of an action or an observation. Its element type is the type parameter of Env.
type Space struct {
	Shape     []int   // nil = scalar
	Low, High float32 // bounds of a Box; equal = unbounded
	N         int     // values of a discrete space, 0 = Box
	Name      string  // path of the tensor; "" for the only one
}

// Discrete is a choice from 0 to n-1.
func Discrete(n int) Space { return Space{N: n} }

// Box is a tensor of numbers from low to high; equal bounds mean unbounded.
func Box(low, high float32, shape ...int) Space { return Space{Shape: shape, Low: low, High: high} }

// Elems returns the number of elements, 1 for a scalar.
func (s Space) Elems() int {
	n := 1
	for _, dim := range s.Shape {
		n *= dim
	}
	return n
}

// Spec describes an environment.
type Spec struct {
	Name         string // name@version
	Action, Obs  Space
	EpisodeLimit int    // steps after which the environment itself truncates, 0 = none
	MaxEnvs      int    // most environments in one batch, 0 = no limit
	StateVersion uint32 // of what environments save: raise it when that changes
	PreferSoA    bool   // faster with one array per element than with one row per environment

	// Describe (optional) changes the other fields where they depend on arguments.
	Describe func(config *Config, spec *Spec)
}
