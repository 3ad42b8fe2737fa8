package hostabi_test

import (
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

func TestParseSpec_RoundTrip(t *testing.T) {
	want := testkit.Spec(4, 2, true)
	want.EpisodeLimit, want.MaxEnvs = 500, 64
	got, err := hostabi.ParseSpec(want.Describe())
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("ParseSpec = %+v, %v; want %+v", got, err, want)
	}
}

func TestParseSpec_RefusesWhatCannotRun(t *testing.T) {
	cases := []struct {
		name   string
		change func(*hostabi.EnvSpec)
		want   string
	}{
		{"future ABI", func(s *hostabi.EnvSpec) { s.ABI.Major = 2 }, "ABI 2.0, this host speaks 1.0"},
		{"two agents", func(s *hostabi.EnvSpec) { s.Agents = 2 }, "2 agents"},
		{"no autoreset", func(s *hostabi.EnvSpec) { s.Autoreset = 0 }, "autoreset bits 0x0"},
		{"unknown role", func(s *hostabi.EnvSpec) { s.Tensors[0].Role = 77 }, "role 77 does not exist"},
		{"unknown dtype", func(s *hostabi.EnvSpec) { s.Tensors[1].DType = 99 }, "dtype 99 does not exist"},
		{"empty dimension", func(s *hostabi.EnvSpec) { s.Tensors[1].Shape[0] = 0 }, "each dimension at least 1"},
		{"huge product", func(s *hostabi.EnvSpec) { s.Tensors[1].Rank = 2; s.Tensors[1].Shape = [6]uint32{1 << 30, 1 << 30} }, "product at most"},
		{"rank of 7", func(s *hostabi.EnvSpec) { s.Tensors[1].Rank = 7 }, "rank 7"},
		{"NaN bound", func(s *hostabi.EnvSpec) { s.Tensors[1].Low = float32(math.NaN()) }, "bounds NaN"},
		{"bounds swapped", func(s *hostabi.EnvSpec) { s.Tensors[1].Low = 1 }, "bounds 1..0"},
		{"reward of i32", func(s *hostabi.EnvSpec) { s.Tensors[2].DType = hostabi.I32 }, "reward has dtype i32, want f32"},
		{"vector reward", func(s *hostabi.EnvSpec) { s.Tensors[2].Rank = 1; s.Tensors[2].Shape[0] = 2 }, "want a scalar"},
		{"two rewards", func(s *hostabi.EnvSpec) { s.Tensors = append(s.Tensors, s.Tensors[2]) }, "two tensors with role reward"},
		{"no truncated", func(s *hostabi.EnvSpec) { s.Tensors[4] = s.Tensors[5]; s.Tensors = s.Tensors[:5] }, "no tensor with role truncated"},
		{"no actions", func(s *hostabi.EnvSpec) { s.Tensors[0].N = 0 }, "a Box action"},
		{"unknown capability", func(s *hostabi.EnvSpec) { s.Caps |= 0x48 }, "caps has the bits 0x48, which mean nothing in ABI 1.0 and must be 0"},
		{"flags of a tensor", func(s *hostabi.EnvSpec) { s.Tensors[2].Flags = 3 }, "tensor 2: reward: flags are 0x3; they are reserved and must be 0"},
		{"shape beyond the rank", func(s *hostabi.EnvSpec) { s.Tensors[1].Shape[4] = 7 }, "observation: shape[4] is 7; beyond rank 1 it is reserved and must be 0"},
		{"short mask", func(s *hostabi.EnvSpec) { s.Tensors[6].Shape[0] = 1 }, "action_mask has 1 elements, the action 2 values"},
		{"same-step without final", func(s *hostabi.EnvSpec) { s.Tensors = append(s.Tensors[:5], s.Tensors[6]) }, "needs a final_observation"},
		{"short final", func(s *hostabi.EnvSpec) { s.Tensors[5].Shape[0] = 3 }, "final_observation has 3 elements, the observation 4"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := testkit.Spec(4, 2, true)
			c.change(&s)
			_, err := hostabi.ParseSpec(s.Describe())
			if !errors.Is(err, hostabi.ErrSpec) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ParseSpec = %v, want ...%s", err, c.want)
			}
		})
	}
}

func TestParseSpec_TellsWhatIsWrongFromWhatIsNotRunYet(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hostabi.EnvSpec)
		notYet bool
	}{
		"a Box action":             {func(s *hostabi.EnvSpec) { s.Tensors[0].N, s.Tensors[0].DType = 0, hostabi.F32 }, true},
		"several Discrete actions": {func(s *hostabi.EnvSpec) { s.Tensors[0].Rank, s.Tensors[0].Shape[0] = 1, 3 }, true},
		"agents":                   {func(s *hostabi.EnvSpec) { s.Agents = 4 }, true},
		"pixels":                   {func(s *hostabi.EnvSpec) { s.Tensors[1].DType = hostabi.U8 }, true},
		"info":                     {func(s *hostabi.EnvSpec) { s.Tensors[5].Role = hostabi.RoleInfo }, true},
		"no agents":                {func(s *hostabi.EnvSpec) { s.Agents = 0 }, false},
		"bounds swapped":           {func(s *hostabi.EnvSpec) { s.Tensors[1].Low = 1 }, false},
		"reward of i32":            {func(s *hostabi.EnvSpec) { s.Tensors[2].DType = hostabi.I32 }, false},
	} {
		s := testkit.Spec(4, 2, true)
		c.change(&s)
		if _, err := hostabi.ParseSpec(s.Describe()); !errors.Is(err, hostabi.ErrSpec) || errors.Is(err, hostabi.ErrNotYet) != c.notYet {
			t.Errorf("%s: %v; want hostabi.ErrNotYet: %t", name, err, c.notYet)
		}
	}
}

func TestParseSpec_RefusesLengthsThatDoNotFit(t *testing.T) {
	spec := testkit.Spec(4, 2, false)
	b := spec.Describe()
	for _, n := range []int{0, 63, 64, len(b) - 1} {
		if _, err := hostabi.ParseSpec(b[:n]); !errors.Is(err, hostabi.ErrSpec) {
			t.Errorf("ParseSpec of %d of %d bytes = %v, want hostabi.ErrSpec", n, len(b), err)
		}
	}
	binary.LittleEndian.PutUint32(b[24:], math.MaxUint32)
	if _, err := hostabi.ParseSpec(b); !errors.Is(err, hostabi.ErrSpec) {
		t.Errorf("ParseSpec of 2^32-1 tensors = %v, want hostabi.ErrSpec", err)
	}
	binary.LittleEndian.PutUint32(b[24:], 6)
	binary.LittleEndian.PutUint32(b[0:], math.MaxUint32)
	if _, err := hostabi.ParseSpec(b); !errors.Is(err, hostabi.ErrSpec) {
		t.Errorf("ParseSpec of a head of 4 GiB = %v, want hostabi.ErrSpec", err)
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []hostabi.EnvSpec{testkit.Spec(4, 2, true), testkit.Spec(1, 1, false)} {
		f.Add(s.Describe())
	}
	f.Add([]byte("\x40\x00\x00\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := hostabi.ParseSpec(b)
		if err != nil {
			return
		}
		if again, err := hostabi.ParseSpec(s.Describe()); err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("ParseSpec of Describe = %+v, %v; want %+v", again, err, s)
		}
		if _, err := trajectory.NewSchema(s, trajectory.Shape{Steps: 3, Envs: 2}); err != nil && !errors.Is(err, trajectory.ErrShape) {
			t.Errorf("NewSchema of an accepted description = %v", err)
		}
	})
}
