package place

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Place is where something runs on this machine. The zero value is anywhere, as the system likes.
type Place struct {
	Cores   string `toml:"cores,omitempty" doc:"Processors that it runs on, such as \"0-3,6\"; empty = any." default:"\"\""`
	Nice    int    `toml:"nice,omitempty" doc:"How far its process stands back for others: 19 = furthest, below 0 = goes before them." range:"-20 to 19" default:"0"`
	Threads int    `toml:"threads,omitempty" doc:"Threads of the numeric libraries in its process: OpenMP, OpenBLAS, MKL, PyTorch, Go; 0 = as they like." range:"1 to 1024" default:"0"`
}

// Bounds of Place.
const (
	MinNice    = -20
	MaxNice    = 19
	MaxThreads = 1024
)

// Or returns the place with what it leaves open taken from another one.
func (p Place) Or(other Place) Place {
	if p.Cores == "" {
		p.Cores = other.Cores
	}
	if p.Nice == 0 {
		p.Nice = other.Nice
	}
	if p.Threads == 0 {
		p.Threads = other.Threads
	}
	return p
}

// String describes the place as status shows it: "cores 0-3, nice 5, 2 threads"; empty for anywhere.
func (p Place) String() string {
	var parts []string
	if p.Cores != "" {
		parts = append(parts, "cores "+p.Cores)
	}
	if p.Nice != 0 {
		parts = append(parts, fmt.Sprintf("nice %d", p.Nice))
	}
	switch {
	case p.Threads == 1:
		parts = append(parts, "1 thread")
	case p.Threads > 1:
		parts = append(parts, fmt.Sprintf("%d threads", p.Threads))
	}
	return strings.Join(parts, ", ")
}

// threadVariables are the variables by which libraries are told how many threads they may have.
var threadVariables = []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS", "GOMAXPROCS"}

// Env returns the variables of the environment of a process with such a number of threads, as NAME=VALUE.
func (p Place) Env() (env []string) {
	if p.Threads > 0 {
		for _, name := range threadVariables {
			env = append(env, name+"="+strconv.Itoa(p.Threads))
		}
	}
	return env
}

// MaxCores is one more than the highest number of a processor.
const MaxCores = 1024

// Cores is a set of processors, ascending. Empty is none.
type Cores []int

// ErrCores is returned for a text that is no set of processors.
var ErrCores = errors.New("no set of processors")

// ParseCores reads a set of processors such as "0-3,6", as taskset and the kernel write them. The error wraps ErrCores.
func ParseCores(text string) (Cores, error) {
	if text == "" {
		return nil, fmt.Errorf("%w: it is empty", ErrCores)
	}
	var cores Cores
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			high = low
		}
		from, err := strconv.ParseUint(low, 10, 16)
		to, wrong := strconv.ParseUint(high, 10, 16)
		switch {
		case err != nil || wrong != nil:
			return nil, fmt.Errorf("%w: %q is neither a number nor a range", ErrCores, part)
		case from > to:
			return nil, fmt.Errorf("%w: %q ends before it begins", ErrCores, part)
		case to >= MaxCores:
			return nil, fmt.Errorf("%w: %d, and the highest number of a processor is %d", ErrCores, to, MaxCores-1)
		}
		for core := from; core <= to; core++ {
			cores = append(cores, int(core))
		}
	}
	slices.Sort(cores)
	return slices.Compact(cores), nil
}

// String writes the set as ParseCores reads it.
func (c Cores) String() string {
	var parts []string
	for i := 0; i < len(c); {
		last := i
		for last+1 < len(c) && c[last+1] == c[last]+1 {
			last++
		}
		part := strconv.Itoa(c[i])
		if last > i {
			part += "-" + strconv.Itoa(c[last])
		}
		parts, i = append(parts, part), last+1
	}
	return strings.Join(parts, ",")
}

// Without returns the processors that another set lacks.
func (c Cores) Without(other Cores) Cores {
	return slices.DeleteFunc(slices.Clone(c), func(core int) bool { return slices.Contains(other, core) })
}
