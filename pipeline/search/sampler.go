package search

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// Sampler gives trials their values.
type Sampler interface {
	// Ask returns the values of a trial, the one at a place among the sampler's own. They depend on the arguments alone, unless it is a
	// program.
	Ask(h *History, trial, place int) (Point, error)
}

// samplers make a configuration's sampler, by its name; the program is made elsewhere.
var samplers = map[string]func(c *Config) Sampler{
	Grid:   func(c *Config) Sampler { return grid{c} },
	Random: func(c *Config) Sampler { return random{c} },
	Sobol:  func(c *Config) Sampler { return sobol{c} },
}

// newSampler returns the sampler of a configuration.
func newSampler(c *Config, program Sampler) (Sampler, error) {
	if made := samplers[c.Sampler]; made != nil {
		return made(c), nil
	}
	if c.Sampler == ByProgram && program != nil {
		return program, nil
	}
	return nil, fmt.Errorf("there is no sampler %q", c.Sampler)
}

// grid takes all combinations, the last key first.
type grid struct{ c *Config }

func (g grid) Ask(_ *History, _, place int) (Point, error) {
	p, left := Point{}, place
	for _, key := range slices.Backward(g.c.Keys()) {
		d := g.c.Space[key]
		p[key] = d.ofGrid(left % d.points())
		left /= d.points()
	}
	if left > 0 {
		return nil, fmt.Errorf("the grid has no point %d", place)
	}
	return p, nil
}

// random draws each value by itself.
type random struct{ c *Config }

func (r random) Ask(_ *History, _, place int) (Point, error) {
	p := Point{}
	for key, d := range r.c.Space {
		p[key] = d.value(float64(word(r.c.Seed, place, key)>>11) / (1 << 53))
	}
	return p, nil
}

// word is a random number for a key at a place: the same whatever other keys there are.
func word(seed uint64, place int, key string) uint64 {
	b := binary.LittleEndian.AppendUint64(nil, seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(place))
	sum := sha256.Sum256(append(b, key...))
	return binary.LittleEndian.Uint64(sum[:])
}
