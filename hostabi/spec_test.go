package hostabi_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// full is a description that uses everything that this version of the ABI has.
func full() hostabi.EnvSpec {
	s := testkit.Spec(4, 2, true)
	s.Doc, s.Licence, s.Needs, s.Flags = "a test", "MIT", hostabi.FeatureAgents, hostabi.SpecDeterministic|hostabi.SpecDynamicAgents
	s.Keys = "left=0\nright=1"
	s.EpisodeLimit, s.MaxEnvs, s.StateVersion, s.StateMax = 500, 64, 3, 1024
	s.Render = hostabi.Render{Modes: hostabi.RenderText | hostabi.RenderRGB, Width: 64, Height: 48, FPS: 30}
	threshold := float32(475)
	s.Rewards = hostabi.Rewards{Low: -1, High: 1, Threshold: &threshold}
	s.Groups = []hostabi.Group{{Name: "team", Agents: 2}, {Name: "rival", Agents: 1}}
	s.Args = []hostabi.Arg{
		{Name: "size", Doc: "side of the board", Type: hostabi.ArgInteger, Flags: hostabi.ArgAffectsSpaces, Min: 1, Max: 19, Default: "9"},
		{Name: "rules", Type: hostabi.ArgChoice, Choices: []string{"chinese", "japanese"}, Default: "chinese"},
	}
	s.Tensors[0].Counts, s.Tensors[0].N, s.Tensors[0].Rank, s.Tensors[0].Shape[0] = []uint32{1, 1}, 0, 1, 2
	s.Tensors[1].Lows, s.Tensors[1].Highs = []float32{-1, 0, 0, 0}, []float32{1, 2, 3, 4}
	s.Tensors[1].Path, s.Tensors[1].Doc, s.Tensors[1].Scale = "inventory/0", "what lies there", 0.5
	s.Tensors = append(s.Tensors, hostabi.Tensor{Role: hostabi.RoleInfo, DType: hostabi.F32, Flags: hostabi.TensorAtT | hostabi.TensorEpisode | hostabi.TensorSum,
		Path: "level"})
	for _, d := range s.Tensors { // the rival has the same
		if d.Role.Rule().Required || d.Role == hostabi.RoleFinalObservation {
			d.Group = 1
			s.Tensors = append(s.Tensors, d)
		}
	}
	return s
}

func TestParseSpec_RoundTrip(t *testing.T) {
	for name, c := range map[string]struct {
		spec   hostabi.EnvSpec
		notYet bool
	}{"plain": {testkit.Spec(4, 2, true), false}, "full": {full(), true}} {
		got, err := hostabi.ParseSpec(c.spec.Describe())
		if errors.Is(err, hostabi.ErrNotYet) != c.notYet || !c.notYet && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range got.Tensors {
			if !got.Tensors[i].Equal(&c.spec.Tensors[i]) || got.Tensors[i].Doc != c.spec.Tensors[i].Doc {
				t.Errorf("%s: tensor %d is %+v, want %+v", name, i, got.Tensors[i], c.spec.Tensors[i])
			}
		}
		c.spec.Tensors, got.Tensors, c.spec.BindingBytes = nil, nil, hostabi.BindingBytes
		if !reflect.DeepEqual(got, c.spec) {
			t.Errorf("%s: ParseSpec = %+v; want %+v", name, got, c.spec)
		}
	}
}

func TestParseSpec_NamesTheErrors(t *testing.T) {
	nan := float32(math.NaN())
	cases := []struct {
		name   string
		change func(*hostabi.EnvSpec)
		want   string
	}{
		{"no name", func(s *hostabi.EnvSpec) { s.Name = "@1" }, "it has no name"},
		{"a name that commands the terminal", func(s *hostabi.EnvSpec) { s.Name = "a\x1b[2J@1" }, "without control characters"},
		{"a name that is not text", func(s *hostabi.EnvSpec) { s.Name = "a\xff@1" }, "want UTF-8"},
		{"a long text", func(s *hostabi.EnvSpec) { s.Doc = strings.Repeat("x", 5000) }, "doc has 5000 bytes, at most 4096"},
		{"agents that wait for the host", func(s *hostabi.EnvSpec) {
			s.Groups, s.Autoreset = []hostabi.Group{{Agents: 4}}, hostabi.Disabled
		}, "agents without autoreset same_step"},
		{"no autoreset", func(s *hostabi.EnvSpec) { s.Autoreset = 0 }, "autoreset has no mode that there is"},
		{"an unknown mode", func(s *hostabi.EnvSpec) { s.Autoreset = 16 }, "autoreset has no mode that there is"},
		{"a picture without a size", func(s *hostabi.EnvSpec) { s.Render.Modes = hostabi.RenderRGB }, "pictures of 0 × 0"},
		{"negative pictures a second", func(s *hostabi.EnvSpec) { s.Render.FPS = -1 }, "-1 pictures a second"},
		{"rewards swapped", func(s *hostabi.EnvSpec) { s.Rewards.Low = 1 }, "rewards from 1 to 0"},
		{"rewards of NaN", func(s *hostabi.EnvSpec) { s.Rewards.High = nan }, "rewards from 0 to NaN"},
		{"an empty group", func(s *hostabi.EnvSpec) { s.Groups = []hostabi.Group{{Name: "none"}} }, `group 0, "none": 0 agents`},
		{"a crowded group", func(s *hostabi.EnvSpec) { s.Groups = []hostabi.Group{{Name: "all", Agents: hostabi.MaxAgents + 1}} }, `group 0, "all": 4097 agents, want 1 to 4096`},
		{"groups without names", func(s *hostabi.EnvSpec) { s.Groups = []hostabi.Group{{Name: "a", Agents: 1}, {Agents: 1}} }, `group 1 of 2 is called ""`},
		{"a group with a slash in its name", func(s *hostabi.EnvSpec) { s.Groups = []hostabi.Group{{Name: "a", Agents: 1}, {Name: "b/c", Agents: 1}} }, `group 1 of 2 is called "b/c"`},
		{"groups of one name", func(s *hostabi.EnvSpec) { s.Groups = []hostabi.Group{{Name: "a", Agents: 1}, {Name: "a", Agents: 1}} }, `groups 0 and 1 are both called "a"`},
		{"a group without tensors", func(s *hostabi.EnvSpec) { s.Groups = []hostabi.Group{{Name: "a", Agents: 1}, {Name: "b", Agents: 1}} }, `group "b" has no tensor with role action`},
		{"a group that there is not", func(s *hostabi.EnvSpec) { s.Tensors[1].Group = 1 }, "it is of group 1, groups count from 0 to 0"},
		{"a role of a later version in a dtype of a later version", func(s *hostabi.EnvSpec) { s.Tensors[2].Role, s.Tensors[2].DType = 77, 99 }, "let it be optional"},
		{"an unknown dtype", func(s *hostabi.EnvSpec) { s.Tensors[1].DType = 99 }, "dtype 99 does not exist"},
		{"an empty dimension", func(s *hostabi.EnvSpec) { s.Tensors[1].Shape[0] = 0 }, "each dimension at least 1"},
		{"a product that overflows", func(s *hostabi.EnvSpec) { s.Tensors[1].Rank = 2; s.Tensors[1].Shape = [6]uint32{1 << 30, 1 << 30} }, "product at most"},
		{"rank of 7", func(s *hostabi.EnvSpec) { s.Tensors[1].Rank = 7 }, "rank 7"},
		{"a shape beyond the rank", func(s *hostabi.EnvSpec) { s.Tensors[1].Shape[4] = 7 }, "observation: shape[4] is 7; beyond rank 1 it is reserved"},
		{"unknown flags of a tensor", func(s *hostabi.EnvSpec) { s.Tensors[2].Flags = 1 << 30 }, "tensor 2: reward: flags have the bits 0x40000000, which mean nothing"},
		{"another axis of time", func(s *hostabi.EnvSpec) { s.Tensors[2].Flags = hostabi.TensorAtT1 }, "the axis of time of this role is RL_TENSOR_AT_T (0x2)"},
		{"a picture of rank 1", func(s *hostabi.EnvSpec) { s.Tensors[1].Flags = hostabi.TensorAtT1 | hostabi.TensorImageHWC }, "a picture has rank 3"},
		{"two ways to gather", func(s *hostabi.EnvSpec) {
			s.Tensors[2].Flags = hostabi.TensorAtT | hostabi.TensorSum | hostabi.TensorMax
		}, "several ways to gather"},
		{"a bound of NaN", func(s *hostabi.EnvSpec) { s.Tensors[1].Low = nan }, "bounds NaN"},
		{"bounds swapped", func(s *hostabi.EnvSpec) { s.Tensors[1].Low = 1 }, "bounds 1..0"},
		{"a bound of NaN beside a side without one", func(s *hostabi.EnvSpec) {
			s.Tensors[1].Flags, s.Tensors[1].High = hostabi.TensorAtT1|hostabi.TensorNoLow, nan
		}, "bounds -Inf..NaN"},
		{"bounds of an element swapped", func(s *hostabi.EnvSpec) {
			s.Tensors[1].Lows, s.Tensors[1].Highs = []float32{0, 0, 3, 0}, []float32{1, 1, 1, 1}
		}, "element 2: bounds 3..1"},
		{"a scale of NaN", func(s *hostabi.EnvSpec) { s.Tensors[1].Scale = nan }, "scale NaN"},
		{"a count of 0", func(s *hostabi.EnvSpec) {
			a := &s.Tensors[0]
			a.N, a.Rank, a.Shape[0], a.Counts = 0, 1, 2, []uint32{3, 0}
		}, "element 1 has no values"},
		{"counts beside n", func(s *hostabi.EnvSpec) {
			a := &s.Tensors[0]
			a.Rank, a.Shape[0], a.Counts = 1, 2, []uint32{3, 2}
		}, "n is 2 next to counts of each element"},
		{"a start that overflows", func(s *hostabi.EnvSpec) { s.Tensors[0].Start = math.MaxInt32 }, "2 values from 2147483647 on"},
		{"choices of f32", func(s *hostabi.EnvSpec) { s.Tensors[0].DType = hostabi.F32 }, "choices of type f32"},
		{"a reward of i32", func(s *hostabi.EnvSpec) { s.Tensors[2].DType = hostabi.I32 }, "reward has dtype i32, want f32"},
		{"a vector of rewards", func(s *hostabi.EnvSpec) { s.Tensors[2].Rank = 1; s.Tensors[2].Shape[0] = 2 }, "want a scalar"},
		{"two rewards", func(s *hostabi.EnvSpec) { s.Tensors = append(s.Tensors, s.Tensors[2]) }, "two tensors with role reward"},
		{"two observations of one path", func(s *hostabi.EnvSpec) { o := s.Tensors[1]; o.Index = 1; s.Tensors = append(s.Tensors, o) }, `two tensors with role observation and path ""`},
		{"an index out of turn", func(s *hostabi.EnvSpec) { s.Tensors[1].Index = 1 }, "has the index 1, want 0"},
		{"a pair that there is not", func(s *hostabi.EnvSpec) { s.Tensors[5].Pair = 1 }, "belongs to observation 1 of its group"},
		{"two masks of one action", func(s *hostabi.EnvSpec) {
			mask := s.Tensors[6]
			mask.Index, mask.Path = 1, "again"
			s.Tensors = append(s.Tensors, mask)
		}, "two tensors with role action_mask belong to action 0"},
		{"two last observations of one", func(s *hostabi.EnvSpec) {
			final := s.Tensors[5]
			final.Index, final.Path = 1, "again"
			s.Tensors = append(s.Tensors, final)
		}, "two tensors with role final_observation belong to observation 0"},
		{"a pair without a meaning", func(s *hostabi.EnvSpec) { s.Tensors[2].Pair = 1 }, "reward has a pair"},
		{"an info of rank 2", func(s *hostabi.EnvSpec) {
			s.Tensors = append(s.Tensors, hostabi.Tensor{Role: hostabi.RoleInfo, DType: hostabi.F32, Path: "map", Rank: 2, Shape: [hostabi.MaxRank]uint32{2, 3}})
		}, `tensor 7: info: "map" has rank 2, want one number or a list: rank 0 or 1`},
		{"two infos of one name", func(s *hostabi.EnvSpec) {
			info := hostabi.Tensor{Role: hostabi.RoleInfo, DType: hostabi.F32, Path: "score"}
			s.Tensors = append(s.Tensors, info, info)
			s.Tensors[8].Index = 1
		}, `two tensors with role info and path "score"`},
		{"activity of an environment", func(s *hostabi.EnvSpec) {
			s.Tensors = append(s.Tensors, hostabi.Tensor{Role: hostabi.RoleActive, DType: hostabi.U8})
		}, "active is of the environment, want a row for each agent"},
		{"no truncated", func(s *hostabi.EnvSpec) { s.Tensors[4] = s.Tensors[5]; s.Tensors = s.Tensors[:5] }, "no tensor with role truncated"},
		{"a short mask", func(s *hostabi.EnvSpec) { s.Tensors[6].Shape[0] = 1 }, "action_mask has 1 elements, the action 2 values"},
		{"same-step without final", func(s *hostabi.EnvSpec) { s.Tensors = append(s.Tensors[:5], s.Tensors[6]) }, "needs a final_observation"},
		{"a short final", func(s *hostabi.EnvSpec) { s.Tensors[5].Shape[0] = 3 }, "final_observation has 3 elements of f32, the observation 4"},
		{"an argument without a name", func(s *hostabi.EnvSpec) { s.Args = []hostabi.Arg{{Type: hostabi.ArgText}} }, "argument 0, \"\": it has no name"},
		{"an argument without a type", func(s *hostabi.EnvSpec) { s.Args = []hostabi.Arg{{Name: "x"}} }, "it has no type"},
		{"an argument with bounds swapped", func(s *hostabi.EnvSpec) { s.Args = []hostabi.Arg{{Name: "x", Type: hostabi.ArgNumber, Min: 1}} }, "bounds 1..0"},
		{"two arguments of one name", func(s *hostabi.EnvSpec) {
			s.Args = []hostabi.Arg{{Name: "x", Type: hostabi.ArgText}, {Name: "x", Type: hostabi.ArgBool}}
		}, "arguments 0 and 1 are both called \"x\""},
		{"an argument's name with an equals sign", func(s *hostabi.EnvSpec) { s.Args = []hostabi.Arg{{Name: "x=y", Type: hostabi.ArgText}} }, "its name has ="},
		{"a default of another type", func(s *hostabi.EnvSpec) {
			s.Args = []hostabi.Arg{{Name: "x", Type: hostabi.ArgInteger, Default: "1.5"}}
		}, "argument 0, \"x\": its default is \"1.5\", want a whole number"},
		{"a default that is no number", func(s *hostabi.EnvSpec) {
			s.Args = []hostabi.Arg{{Name: "x", Type: hostabi.ArgNumber, Default: "nan"}}
		}, "its default is \"nan\", want a number"},
		{"a default out of range", func(s *hostabi.EnvSpec) {
			s.Args = []hostabi.Arg{{Name: "x", Type: hostabi.ArgInteger, Min: 1, Max: 19, Default: "20"}}
		}, "its default is 20, want a whole number from 1 to 19"},
		{"a default that is neither true nor false", func(s *hostabi.EnvSpec) {
			s.Args = []hostabi.Arg{{Name: "x", Type: hostabi.ArgBool, Default: "1"}}
		}, "its default is \"1\", want true or false"},
		{"a default that is no choice", func(s *hostabi.EnvSpec) {
			s.Args = []hostabi.Arg{{Name: "x", Type: hostabi.ArgChoice, Choices: []string{"a", "b"}, Default: "c"}}
		}, "its default is \"c\", want one of a, b"},
		{"no choice", func(s *hostabi.EnvSpec) { s.Args = []hostabi.Arg{{Name: "x", Type: hostabi.ArgChoice}} }, "nothing to choose from"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := testkit.Spec(4, 2, true)
			c.change(&s)
			_, err := hostabi.ParseSpec(s.Describe())
			if !errors.Is(err, hostabi.ErrSpec) || errors.Is(err, hostabi.ErrNotYet) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ParseSpec = %v, want ...%s", err, c.want)
			}
		})
	}
}

// A valid description that this host does not run is never the author's mistake.
func TestParseSpec_NamesUnsupportedParts(t *testing.T) {
	extra := func(d hostabi.Tensor) func(*hostabi.EnvSpec) {
		return func(s *hostabi.EnvSpec) { s.Tensors = append(s.Tensors, d) }
	}
	for _, c := range []struct {
		name, want string
		change     func(*hostabi.EnvSpec)
	}{
		{"needs whose bits are reserved", "it needs feature 4, feature 6, feature 8, feature 9, feature 10", func(s *hostabi.EnvSpec) { s.Needs = 1<<11 - 1 }},
		{"an unknown need", "it needs feature 50", func(s *hostabi.EnvSpec) { s.Needs = 1 << 50 }},
		{"a shared action", "action that 4 agents share", func(s *hostabi.EnvSpec) { s.Groups = []hostabi.Group{{Agents: 4}} }},
		{"a shared observation", "observation that 4 agents share", func(s *hostabi.EnvSpec) {
			s.Groups = []hostabi.Group{{Agents: 4}}
			s.Tensors[0].Flags |= hostabi.TensorPerAgent
		}},
		{"the discount of an agent", "discount of agents", func(s *hostabi.EnvSpec) {
			s.Tensors = append(s.Tensors, hostabi.Tensor{Role: hostabi.RoleActive, DType: hostabi.U8, Flags: hostabi.TensorPerAgent},
				hostabi.Tensor{Role: hostabi.RoleDiscount, DType: hostabi.F32})
		}},
		{"a Box of i32", "action: a Box of i32, want f32", func(s *hostabi.EnvSpec) { s.Tensors, s.Tensors[0].N = s.Tensors[:6], 0 }},
		{"choices of i64", "action: choices of i64, want i32", func(s *hostabi.EnvSpec) { s.Tensors[0].DType = hostabi.I64 }},
		{"too many choices", "action: 100000 values, at most 65536", func(s *hostabi.EnvSpec) { s.Tensors, s.Tensors[0].N = s.Tensors[:6], 100000 }},
		{"reset parameters of i32", "role reset_param of i32", extra(hostabi.Tensor{Role: hostabi.RoleResetParam, DType: hostabi.I32})},
	} {
		s := testkit.Spec(4, 2, true)
		c.change(&s)
		if _, err := hostabi.ParseSpec(s.Describe()); !errors.Is(err, hostabi.ErrNotYet) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want ...%s and ErrNotYet", c.name, err, c.want)
		}
	}
	unknown := testkit.Spec(4, 2, true)
	extra(hostabi.Tensor{Role: 77, DType: hostabi.I64, Flags: hostabi.TensorAtT})(&unknown)
	extra(hostabi.Tensor{Role: 78, DType: 99, Rank: 9, Flags: hostabi.TensorAtT | hostabi.TensorOptional})(&unknown)
	extra(hostabi.Tensor{Role: 79, DType: hostabi.U8, Pair: 3, Flags: hostabi.TensorAtT})(&unknown)
	extra(hostabi.Tensor{Role: 0, DType: hostabi.U8, Index: 3, Flags: hostabi.TensorAtT})(&unknown)
	optional := testkit.Spec(4, 2, true)
	for _, d := range []hostabi.Tensor{{Role: 10, DType: hostabi.F64}, {Role: 11, DType: hostabi.F64}, {Role: 13, DType: hostabi.F32},
		{Role: 15, DType: hostabi.I64}, {Role: 16, DType: hostabi.I32}, {Role: 17, DType: hostabi.U8}, {Role: hostabi.RoleResetParam, DType: hostabi.I32}} {
		d.Flags = hostabi.TensorOptional
		extra(d)(&optional)
	}
	for name, s := range map[string]hostabi.EnvSpec{"roles of a later version": unknown, "roles that are optional": optional} {
		if _, err := hostabi.ParseSpec(s.Describe()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Hints of a later version are ignored: the description is what it would be without them.
func TestParseSpec_IgnoresHintsThatItDoesNotKnow(t *testing.T) {
	s := testkit.Spec(4, 2, true)
	s.Args = []hostabi.Arg{{Name: "size", Type: hostabi.ArgText, Default: "9"}}
	want, err := hostabi.ParseSpec(s.Describe())
	if err != nil {
		t.Fatal(err)
	}
	s.Caps, s.Flags, s.Render.Modes, s.Autoreset = s.Caps|0x48, s.Flags|0x40a, s.Render.Modes|8, s.Autoreset|16
	s.Args = []hostabi.Arg{{Name: "size", Type: 6, Flags: 8, Min: math.NaN(), Max: -1, Choices: []string{"a", "b"}, Default: "9"}}
	got, err := hostabi.ParseSpec(s.Describe())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("with hints %+v, %v, want %+v", got, err, want)
	}
}

// Every space of actions is read, and described in Gymnasium's words.
func TestSpec_SpacesOfActions(t *testing.T) {
	box := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{3}, Low: -1, High: 1}
	several := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, Counts: []uint32{3, 2}}
	binary := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, Rank: 1, Shape: [hostabi.MaxRank]uint32{4}, N: 2, Flags: hostabi.TensorBinary}
	from := hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, N: 3, Start: -1}
	for _, c := range []struct {
		want    string
		actions []hostabi.Tensor
	}{
		{"Discrete(2)", []hostabi.Tensor{{Role: hostabi.RoleAction, DType: hostabi.I32, N: 2}}},
		{"Box[3]", []hostabi.Tensor{box}},
		{"MultiDiscrete[3,2]", []hostabi.Tensor{several}},
		{"MultiBinary[4]", []hostabi.Tensor{binary}},
		{"Discrete(3) from -1", []hostabi.Tensor{from}},
		{"arm: Box[3], hand: Discrete(3) from -1", []hostabi.Tensor{box, from}},
	} {
		s := testkit.Spec(4, 2, false)
		if len(c.actions) > 1 {
			c.actions[0].Path, c.actions[1].Path, c.actions[1].Index = "arm", "hand", 1
		}
		s.Tensors = append(c.actions, s.Tensors[1:]...)
		got, err := hostabi.ParseSpec(s.Describe())
		if err != nil || got.Spaces(hostabi.RoleAction) != c.want {
			t.Errorf("%q, %v; want %q", got.Spaces(hostabi.RoleAction), err, c.want)
		}
	}
}

// Whatever a count, a size or an offset says, no byte outside the description is read.
func TestParseSpec_RefusesLengthsThatDoNotFit(t *testing.T) {
	whole := full()
	b := whole.Describe()
	for n := range b {
		if _, err := hostabi.ParseSpec(b[:n]); !errors.Is(err, hostabi.ErrSpec) {
			t.Errorf("ParseSpec of %d of %d bytes = %v, want ErrSpec", n, len(b), err)
		}
	}
	le := binary.LittleEndian
	const group, tensor = hostabi.SpecBytes, hostabi.SpecBytes + 2*hostabi.GroupBytes
	arg := tensor + len(whole.Tensors)*hostabi.TensorBytes
	outside := func(at int) func([]byte) { return func(b []byte) { le.PutUint32(b[at:], 1<<20) } }
	for _, c := range []struct {
		name, want string
		change     func(b []byte)
	}{
		{"a head of 4 GiB", "a head of 4294967295 bytes", func(b []byte) { le.PutUint32(b[0:], math.MaxUint32) }},
		{"an odd head", "a head of 130 bytes, want a multiple of 4 from 128 to 4096", func(b []byte) { le.PutUint32(b[0:], 130) }},
		{"short tensors", "tensor_bytes = 64, want a multiple of 4 from 128 to 4096", func(b []byte) { le.PutUint16(b[24:], 64) }},
		{"odd tensors", "tensor_bytes = 129", func(b []byte) { le.PutUint16(b[24:], 129) }},
		{"short bindings", "binding_bytes = 32", func(b []byte) { le.PutUint16(b[26:], 32) }},
		{"short groups", "group_bytes = 28, want a multiple of 4 from 32 to 4096", func(b []byte) { le.PutUint16(b[28:], 28) }},
		{"odd groups", "group_bytes = 34", func(b []byte) { le.PutUint16(b[28:], 34) }},
		{"long groups", "group_bytes = 4100", func(b []byte) { le.PutUint16(b[28:], 4100) }},
		{"groups of another length", "do not fit", func(b []byte) { le.PutUint16(b[28:], 4096) }},
		{"short arguments", "arg_bytes = 44, want a multiple of 4 from 48 to 4096", func(b []byte) { le.PutUint16(b[30:], 44) }},
		{"odd arguments", "arg_bytes = 50", func(b []byte) { le.PutUint16(b[30:], 50) }},
		{"arguments of no length, of which there are none", "arg_bytes = 0", func(b []byte) { le.PutUint16(b[30:], 0); le.PutUint32(b[40:], 0) }},
		{"arguments of another length", "do not fit", func(b []byte) { le.PutUint16(b[30:], 4096) }},
		{"too many tensors", "4294967295 tensors, at most 1024", func(b []byte) { le.PutUint32(b[32:], math.MaxUint32) }},
		{"too many groups", "65 groups, at most 64", func(b []byte) { le.PutUint32(b[36:], 65) }},
		{"more arguments than there is room for", "do not fit", func(b []byte) { le.PutUint32(b[40:], 256) }},
		{"too many arguments", "257 args, at most 256", func(b []byte) { le.PutUint32(b[40:], 257) }},
		{"strings within the head", "strings at 132, within the head of 136 bytes", func(b []byte) { le.PutUint32(b[44:], 132) }},
		{"strings outside", "strings at", func(b []byte) { le.PutUint32(b[48:], math.MaxUint32) }},
		{"strings without an end", "does not begin and end with a NUL", func(b []byte) { le.PutUint32(b[48:], le.Uint32(b[48:])-1) }},
		{"a name outside the table", "name is the string at 1048576, outside the table", outside(104)},
		{"a version outside the table", "version is the string at 1048576, outside the table", outside(108)},
		{"a doc outside the table", "doc is the string at 1048576, outside the table", outside(112)},
		{"a licence outside the table", "licence is the string at 1048576, outside the table", outside(116)},
		{"keys outside the table", "keys is the string at 1048576, outside the table", outside(128)},
		{"a group's name outside the table", "name of group 1 is the string at 1048576, outside the table", outside(group + 32)},
		{"a path outside the table", "path of tensor 1 is the string at 1048576, outside the table", outside(tensor + 128 + 64)},
		{"a tensor's doc outside the table", "doc of tensor 1 is the string at 1048576, outside the table", outside(tensor + 128 + 68)},
		{"an argument's name outside the table", "name of argument 0 is the string at 1048576, outside the table", outside(arg)},
		{"an argument's doc outside the table", "doc of argument 0 is the string at 1048576, outside the table", outside(arg + 4)},
		{"a default outside the table", "default of argument 1 is the string at 1048576, outside the table", outside(arg + 48 + 32)},
		{"choices outside the table", "choices of argument 1 is the string at 1048576, outside the table", outside(arg + 48 + 36)},
		{"reserved bytes of the head", "head 0: byte 125 is 9; it is reserved", func(b []byte) { b[125] = 9 }},
		{"names of agents outside the table", "agent_names of group 1 is the string at 1048576, outside the table", outside(group + 32 + 12)},
		{"flags of a group", "group 1: flags are 0x1; they are reserved", func(b []byte) { b[group+32+8] = 1 }},
		{"reserved bytes of a group", "groups 1: byte 16 is 1; it is reserved", func(b []byte) { b[group+32+16] = 1 }},
		{"reserved bytes of a tensor", "tensors 0: byte 58 is 1; it is reserved", func(b []byte) { b[tensor+58] = 1 }},
		{"reserved bytes of an argument", "args 1: byte 40 is 1; it is reserved", func(b []byte) { b[arg+48+40] = 1 }},
		{"values within the head", "after the head of 136", func(b []byte) { le.PutUint32(b[tensor+52:], 64) }},
		{"values outside", "tensor 0: values at", func(b []byte) { le.PutUint32(b[tensor+52:], 1<<31) }},
		{"values out of line", "want a multiple of 4", func(b []byte) { le.PutUint32(b[tensor+52:], 129) }},
	} {
		bad := bytes.Clone(b)
		c.change(bad)
		if _, err := hostabi.ParseSpec(bad); !errors.Is(err, hostabi.ErrSpec) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want ...%s", c.name, err, c.want)
		}
	}
}

// The value of an absent bound is ignored.
func TestParseSpec_OpenSides(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	box := func(flags hostabi.TensorFlags) hostabi.Tensor {
		return hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.F32, Rank: 1, Shape: [hostabi.MaxRank]uint32{2}, Low: nan, High: nan, Flags: flags}
	}
	below, above, whole := box(hostabi.TensorNoLow), box(hostabi.TensorNoHigh), box(hostabi.TensorNoLow|hostabi.TensorNoHigh)
	below.High, above.Low, above.High = -5, 3, -3
	elements := box(hostabi.TensorNoLow)
	elements.High, elements.Lows, elements.Highs = 0, []float32{nan, 9}, []float32{1, 2}
	for _, c := range []struct {
		name   string
		action hostabi.Tensor
		want   [4]float32 // bounds of both elements
	}{
		{"below", below, [4]float32{-inf, -5, -inf, -5}},
		{"above", above, [4]float32{3, inf, 3, inf}},
		{"both", whole, [4]float32{-inf, inf, -inf, inf}},
		{"by element", elements, [4]float32{-inf, 1, -inf, 2}},
	} {
		s := testkit.Spec(4, 2, false)
		s.Tensors[0] = c.action
		spec, err := hostabi.ParseSpec(s.Describe())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := spec.Tensors[0]
		var bounds [4]float32
		bounds[0], bounds[1] = got.Bounds(0)
		bounds[2], bounds[3] = got.Bounds(1)
		if bounds != c.want || !got.Equal(&got) {
			t.Errorf("%s: bounds %v of %+v, want %v", c.name, bounds, got, c.want)
		}
	}
}

// A guest of a later version has longer records; this host reads only the part that it knows.
func TestParseSpec_ReadsLongerRecords(t *testing.T) {
	const more = 16
	spec := testkit.Spec(4, 2, true)
	b := spec.Describe()
	count := len(spec.Tensors)
	longer := make([]byte, 0, len(b)+more*(count+1))
	longer = append(append(longer, b[:hostabi.SpecBytes]...), bytes.Repeat([]byte{0xee}, more)...)
	for i := range count {
		at := hostabi.SpecBytes + i*hostabi.TensorBytes
		longer = append(append(longer, b[at:at+hostabi.TensorBytes]...), bytes.Repeat([]byte{0xee}, more)...)
	}
	longer = append(longer, b[hostabi.SpecBytes+count*hostabi.TensorBytes:]...)
	le := binary.LittleEndian
	le.PutUint32(longer[0:], hostabi.SpecBytes+more)
	le.PutUint16(longer[24:], hostabi.TensorBytes+more)
	le.PutUint16(longer[26:], hostabi.BindingBytes+more)
	le.PutUint32(longer[44:], le.Uint32(longer[44:])+uint32(more*(count+1)))
	got, err := hostabi.ParseSpec(longer)
	if err != nil || got.Name != spec.Name || len(got.Tensors) != count || got.BindingBytes != hostabi.BindingBytes+more {
		t.Errorf("ParseSpec = %+v, %v", got, err)
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []hostabi.EnvSpec{testkit.Spec(4, 2, true), testkit.Spec(1, 1, false), full()} {
		f.Add(s.Describe())
	}
	f.Add([]byte("\x40\x00\x00\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := hostabi.ParseSpec(b)
		if err != nil {
			return
		}
		again, err := hostabi.ParseSpec(s.Describe())
		same := slices.EqualFunc(again.Tensors, s.Tensors, func(a, b hostabi.Tensor) bool { return a.Equal(&b) })
		if err != nil || !same || again.Name != s.Name || !slices.Equal(again.Groups, s.Groups) || len(again.Args) != len(s.Args) {
			t.Errorf("ParseSpec of Describe = %+v, %v; want %+v", again, err, s)
		}
		if _, err := trajectory.NewSchema(s, trajectory.Shape{Steps: 3, Envs: 2}); err != nil && !errors.Is(err, trajectory.ErrShape) {
			t.Errorf("NewSchema of an accepted description = %v", err)
		}
	})
}

// Messages and reports name an agent as the environment does, also in a later group; without names by its number alone.
func TestSpec_AgentsHaveTheirOwnNames(t *testing.T) {
	s := hostabi.EnvSpec{Groups: []hostabi.Group{{Name: "red", Agents: 2}, {Name: "blue", Agents: 2, AgentNames: "ann\nbob"}}}
	for agent, want := range []string{"agent 0", "agent 1", "agent 2 (ann)", "agent 3 (bob)", "agent 4"} {
		if got := s.Agent(agent); got != want {
			t.Errorf("agent %d is called %q, want %q", agent, got, want)
		}
	}
	if got, want := s.OwnNames(), []string{"", "", "blue/ann", "blue/bob"}; !slices.Equal(got, want) {
		t.Errorf("own names %q, want %q", got, want)
	}
	s.Groups = s.Groups[1:]
	if got, want := s.OwnNames(), []string{"ann", "bob"}; !slices.Equal(got, want) {
		t.Errorf("own names of one group %q, want %q", got, want)
	}
	s.Groups[0].AgentNames = ""
	if got := s.OwnNames(); got != nil {
		t.Errorf("without names they are %q", got)
	}
}
