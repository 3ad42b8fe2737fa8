package graphtest

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rlhost/rlhost/core/component"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
)

// Described is an environment that has spaces and nothing else.
type Described struct {
	env.Plugin
	Obs    uint32
	Limit  int // of its episodes
	Groups []hostabi.Group
	Args   []hostabi.Arg
	Turns  bool // its agents do not act in all rows
	Box    bool // its action is a number and not a choice
	Free   bool // and without bounds
	Most   int  // environments of a batch; 0 = no limit
}

// Spec returns one of those observations and two actions.
func (d Described) Spec() hostabi.EnvSpec {
	obs := hostabi.Tensor{Role: hostabi.RoleObservation, DType: hostabi.F32, Rank: 1}
	obs.Shape[0] = d.Obs
	act := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2}
	if d.Box {
		act = hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Low: -1, High: 1}
		act.Shape[0] = 2
	}
	if d.Free {
		act.Flags |= hostabi.TensorNoHigh
	}
	spec := hostabi.EnvSpec{Name: "described@1", Groups: d.Groups, Args: d.Args, EpisodeLimit: d.Limit, MaxEnvs: d.Most, Tensors: []hostabi.Tensor{act, obs}}
	if d.Turns {
		spec.Tensors = append(spec.Tensors, hostabi.Tensor{Role: hostabi.RoleActive, DType: hostabi.U8})
	}
	return spec
}

// Hash returns the same for all.
func (d Described) Hash() string { return strings.Repeat("0123", 16) }

// Close has nothing to release.
func (d Described) Close() error { return nil }

// narrow is one whose instances have memory of that size at most.
type narrow struct {
	Described
	end uint64
}

func (n narrow) MemoryFor(blocks int, s *trajectory.Schema) (least, end uint64) {
	return uint64(blocks) * uint64(s.GuestBytes), n.end
}

// picky takes the argument length, and does not describe it.
type picky struct {
	Described
	args map[string]string
}

func (p picky) NewEnv(env.Options) (env.Env, error) {
	for name := range p.args {
		if name != "length" {
			return nil, &env.Fault{Kind: env.FaultStatus, Call: hostabi.ExportCreate, Env: -1, Err: fmt.Errorf("unknown argument %s", name)}
		}
	}
	return nil, env.ErrUnsupported
}

// Load loads cartpole@1 and the tests' other environments; see graph.Parts.
func Load(_ context.Context, _ string, e graph.EnvTable, _ string) (env.Plugin, error) {
	switch e.Use {
	case "cartpole@1":
		return Described{Obs: 4, Limit: 500}, nil
	case "pendulum@1":
		return Described{Obs: 3, Limit: 200}, nil
	case "./duel.wasm":
		return Described{Obs: 4, Limit: 200, Groups: []hostabi.Group{{Name: "player", Agents: 2}}}, nil
	case "./nim.wasm":
		return Described{Obs: 4, Limit: 200, Groups: []hostabi.Group{{Name: "player", Agents: 2}}, Turns: true}, nil
	case "./tag.wasm":
		return Described{Obs: 4, Limit: 200, Groups: []hostabi.Group{{Name: "hunters", Agents: 2}, {Name: "prey", Agents: 1}}}, nil
	case "./board.wasm":
		board := Described{Obs: 4, Limit: 200, Args: []hostabi.Arg{
			{Name: "size", Doc: "side of the board", Type: hostabi.ArgInteger, Min: 2, Max: 19, Default: "9"},
			{Name: "rules", Type: hostabi.ArgChoice, Choices: []string{"chinese", "japanese"}, Default: "chinese"},
			{Name: "wind", Doc: "how strong it blows", Type: hostabi.ArgNumber},
		}}
		return board, env.CheckArgs(board.Args, e.Args)
	case "./corridor.wasm":
		return picky{Described{Obs: 4, Limit: 50}, e.Args}, nil
	case "./arm.wasm":
		return Described{Obs: 3, Limit: 200, Box: true}, nil
	case "./free.wasm":
		return Described{Obs: 3, Limit: 200, Box: true, Free: true}, nil
	case "./endless.wasm":
		return Described{Obs: 4}, nil
	case "./image.wasm":
		return narrow{Described{Obs: 84 * 84 * 4, Limit: 1000}, 1 << 32}, nil
	case "./small.wasm":
		return narrow{Described{Obs: 84 * 84 * 4, Limit: 1000}, 64 << 20}, nil
	case "./few.wasm":
		return Described{Obs: 4, Limit: 200, Most: 12}, nil
	case "./future.wasm":
		return nil, &table.Error{Code: "E050", Reason: "future.wasm speaks ABI 2, this rlhost 1", Help: "update rlhost"}
	case "./text.wasm":
		return nil, &table.Error{Code: "E014", Reason: "text.wasm is not a WebAssembly module", Help: "name the built file"}
	}
	return nil, &fs.PathError{Op: "open", Path: e.Use, Err: fs.ErrNotExist}
}

// Spec is what the environment of Load is; see graph.Parts.
func Spec(ctx context.Context, name string, e graph.EnvTable, dir string) (hostabi.EnvSpec, error) {
	p, err := Load(ctx, name, e, dir)
	if err != nil {
		return hostabi.EnvSpec{}, err
	}
	return p.Spec(), p.Close()
}

// Loading are the standard kinds with environments that can be loaded.
func Loading() *graph.Parts {
	parts := Standard()
	parts.Load, parts.Spec = Load, Spec
	parts.Memory = 4 << 30
	parts.Policy = func(decode func(into any) error, _ *hostabi.EnvSpec) (component.Policy, error) {
		chunk, past, logStd, err := readPolicy(decode)
		return Policy{"policy", chunk, past, logStd}, err
	}
	return parts
}

// Policy is a policy whose network is a text. With chunks it keeps a state of 256 numbers.
type Policy struct {
	Network string
	Chunk   int
	Past    int // earlier rows that it reads
	LogStd  float64
}

// Doubt is that of a deviation of more than e³.
func (p Policy) Doubt() *component.ConfigError {
	if p.LogStd <= 3 {
		return nil
	}
	return &component.ConfigError{Key: "action", Reason: "draws first actions far beyond the bounds", Help: "use action = { rescale = true }"}
}

// Memory is Past, and the state, if there are chunks.
func (p Policy) Memory() trajectory.Memory {
	return trajectory.Memory{Past: p.Past, State: 256 * min(p.Chunk, 1), Chunk: p.Chunk}
}

// SameNetwork returns nil if both have the same text.
func (p Policy) SameNetwork(next component.Policy) error {
	if p != next {
		return fmt.Errorf("%v and %v", p, next)
	}
	return nil
}
