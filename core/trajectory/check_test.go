package trajectory

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"

	"github.com/rlhost/rlhost/hostabi"
)

func testTrajectory(t testing.TB, spec hostabi.EnvSpec, shape Shape) Trajectory {
	t.Helper()
	s, err := NewSchema(spec, shape)
	if err != nil {
		t.Fatal(err)
	}
	return Trajectory{Schema: s, Mem: alignedBytes(s.Bytes)}
}

// alignedBytes returns n bytes whose start is aligned like a page for the purposes of views.
func alignedBytes(n int) []byte {
	words := make([]uint64, n/8+16)
	b := view8(words)
	for i := range b {
		if alignedTo64(b[i:]) {
			return b[i : i+n : i+n]
		}
	}
	panic("no aligned byte in 128")
}

func TestCheckStep_NamesTheGuestsValue(t *testing.T) {
	cases := []struct {
		name  string
		write func(Trajectory)
		env   int
		want  string
	}{
		{"NaN observation", func(tr Trajectory) { tr.Float32(Obs)[1*5*3+2*3+1] = float32(math.NaN()) }, 2, "element 1 is NaN"},
		{"infinite observation", func(tr Trajectory) { tr.Float32(Obs)[1*5*3+4*3+2] = float32(math.Inf(-1)) }, 4, "element 2 is -Inf"},
		{"infinite reward", func(tr Trajectory) { tr.Float32(Reward)[3] = float32(math.Inf(1)) }, 3, "reward is +Inf"},
		{"terminated of 2", func(tr Trajectory) { tr.Bytes(Terminated)[4] = 2 }, 4, "terminated is 2"},
		{"truncated of 255", func(tr Trajectory) { tr.Bytes(Truncated)[0] = 255 }, 0, "truncated is 255"},
		{"no legal action", func(tr Trajectory) { clear(tr.Bytes(Mask)[1*5*2+3*2 : 1*5*2+4*2]) }, 3, "no legal action"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			tr := testTrajectory(t, testkit.Spec(3, 2, true), Shape{Steps: 2, Envs: 5})
			for i := range tr.Bytes(Mask) {
				tr.Bytes(Mask)[i] = 1
			}
			if _, env, err := tr.CheckStep(0, hostabi.SameStep); err != nil || env != -1 {
				t.Fatalf("CheckStep of good rows = env %d, %v", env, err)
			}
			c.write(tr)
			_, env, err := tr.CheckStep(0, hostabi.SameStep)
			if env != c.env || !errors.Is(err, ErrOutput) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("CheckStep = env %d, %v; want env %d, ...%s", env, err, c.env, c.want)
			}
		})
	}
}

func TestCheckStep_TerminatedWinsOverTruncated(t *testing.T) {
	for _, envs := range []int{1, 5, 8, 19} {
		tr := testTrajectory(t, testkit.Spec(1, 2, false), Shape{Steps: 1, Envs: envs})
		last := envs - 1
		tr.Bytes(Terminated)[last], tr.Bytes(Truncated)[last] = 1, 1
		ended, _, err := tr.CheckStep(0, hostabi.SameStep)
		if err != nil || ended != AnyTerminated|AnyTruncated {
			t.Errorf("%d envs: ended %v, %v", envs, ended, err)
		}
		if got := tr.Bytes(Truncated)[last]; got != 0 {
			t.Errorf("%d envs: truncated = %d beside terminated, want 0", envs, got)
		}
	}
}

func TestCheckStep_DoesNotAllocate(t *testing.T) {
	tr := testTrajectory(t, testkit.Spec(4, 2, false), Shape{Steps: 8, Envs: 64})
	tr.Bytes(Terminated)[3*64+5] = 1
	if n := testing.AllocsPerRun(100, func() { tr.CheckStep(3, hostabi.SameStep) }); n != 0 {
		t.Errorf("CheckStep allocates %v times, want 0", n)
	}
}

// Last observations are of episodes that have ended in the row, and lie in final_obs under same-step autoreset alone.
func TestS17CheckStepLooksAtLastObservations(t *testing.T) {
	for _, soa := range []bool{false, true} {
		tr := testTrajectory(t, testkit.Spec(3, 2, false), Shape{Steps: 2, Envs: 11, SoA: soa})
		final := tr.Row(FinalObs, 0)
		bad := (9*final.StrideRow + 2*final.StrideElem) / 4
		final.Float32()[bad] = float32(math.NaN())
		tr.Bytes(Terminated)[8] = 1
		if _, env, err := tr.CheckStep(0, hostabi.SameStep); err != nil {
			t.Errorf("SoA %v: env %d, %v: its episode goes on", soa, env, err)
		}
		for _, flag := range []Column{Terminated, Truncated} {
			tr.Bytes(flag)[9] = 1
			_, env, err := tr.CheckStep(0, hostabi.SameStep)
			if env != 9 || !errors.Is(err, ErrOutput) || !strings.Contains(err.Error(), "final_obs element 2, of the last observation of an episode, is NaN") {
				t.Errorf("SoA %v, %v: env %d, %v", soa, flag, env, err)
			}
			if _, env, err := tr.CheckStep(0, hostabi.NextStep); err != nil {
				t.Errorf("SoA %v, %v, next-step: env %d, %v: the last observation is in obs", soa, flag, env, err)
			}
			tr.Bytes(flag)[9] = 0
		}
	}
}

// Infos are finite; one of the end of an episode only where the environment has ended one. Errors name the figure.
func TestCheckStep_LooksAtInfos(t *testing.T) {
	spec := testkit.Spec(3, 2, false)
	spec.Tensors = append(spec.Tensors, hostabi.Tensor{Role: hostabi.RoleInfo, DType: hostabi.F32, Path: "score"},
		hostabi.Tensor{Role: hostabi.RoleInfo, Index: 1, DType: hostabi.F32, Path: "parts", Rank: 1, Shape: [hostabi.MaxRank]uint32{3},
			Flags: hostabi.TensorEpisode})
	for _, soa := range []bool{false, true} {
		tr := testTrajectory(t, spec, Shape{Steps: 2, Envs: 11, SoA: soa})
		parts := tr.Row(Info.At(1), 1)
		parts.Float32()[(9*parts.StrideRow+2*parts.StrideElem)/4] = float32(math.NaN())
		tr.Bytes(Terminated)[11+8] = 1
		if _, env, err := tr.CheckStep(1, hostabi.NextStep); err != nil {
			t.Errorf("SoA %v: env %d, %v: its episode goes on", soa, env, err)
		}
		tr.Bytes(Truncated)[11+9] = 1
		_, env, err := tr.CheckStep(1, hostabi.NextStep)
		if env != 9 || !errors.Is(err, ErrOutput) || !strings.HasSuffix(err.Error(), `info/1 "parts/2" is NaN`) {
			t.Errorf("SoA %v: env %d, %v", soa, env, err)
		}
		tr.Float32(Info)[11+4] = float32(math.Inf(1))
		_, env, err = tr.CheckStep(1, hostabi.NextStep)
		if env != 4 || !errors.Is(err, ErrOutput) || !strings.HasSuffix(err.Error(), `info "score" is +Inf`) {
			t.Errorf("SoA %v: env %d, %v", soa, env, err)
		}
	}
}

// Figures have the names of their tensors, and there are MaxFigures of them at most.
func TestSchema_NamesFigures(t *testing.T) {
	spec := testkit.Spec(3, 2, false)
	spec.Tensors = append(spec.Tensors, hostabi.Tensor{Role: hostabi.RoleInfo, DType: hostabi.F32, Flags: hostabi.TensorMax},
		hostabi.Tensor{Role: hostabi.RoleInfo, Index: 1, DType: hostabi.F32, Path: "map", Rank: 1, Shape: [hostabi.MaxRank]uint32{1000},
			Flags: hostabi.TensorEpisode})
	s, err := NewSchema(spec, Shape{Steps: 2, Envs: 3})
	if err != nil {
		t.Fatal(err)
	}
	list := s.Figures()
	first, last := Figure{Name: "info", Column: Info, Gather: hostabi.TensorMax, Count: 1}, Figure{Name: "map/254", Column: Info.At(1), Elem: 254, AtEnd: true, Count: 1}
	if len(list) != MaxFigures || list[0] != first || list[MaxFigures-1] != last {
		t.Errorf("%d figures from %+v to %+v", len(list), list[0], list[len(list)-1])
	}
}

func BenchmarkCheckStep(b *testing.B) {
	for name, ends := range map[string]int{"no end": 0, "one end": 1, "all end": 64} {
		b.Run(name, func(b *testing.B) {
			tr := testTrajectory(b, testkit.Spec(4, 2, false), Shape{Steps: 8, Envs: 64})
			for env := range ends {
				tr.Bytes(Terminated)[3*64+env] = 1
			}
			for b.Loop() {
				tr.CheckStep(3, hostabi.SameStep)
			}
		})
	}
}

func TestDataset_RoundTripAndRefusal(t *testing.T) {
	want := []Member{{Handle: hostabi.MakeHandle(1, 2, 3), Part: Part{First: 4, Envs: 6, Number: 1}}, {Handle: hostabi.MakeHandle(1, 5, 9)}}
	block := make([]byte, DatasetBytes(2))
	if err := WriteDataset(block, 7, want); err != nil {
		t.Fatal(err)
	}
	index, got, err := ReadDataset(block, nil)
	if err != nil || index != 7 || !slices.Equal(got, want) {
		t.Errorf("ReadDataset = %d, %v, %v, want %v", index, got, err, want)
	}
	for what, spoil := range map[string]func(b []byte){
		"more parts than there is room for": func(b []byte) { b[12] = 3 },
		"a part of another dataset's block": func(b []byte) { b[32] = 2 },
		"a part without environments":       func(b []byte) { b[40] = 0 },
		"two parts of one block":            func(b []byte) { b[12] = 2; b[48+8] = 1 },
	} {
		bad := slices.Clone(block)
		spoil(bad)
		if _, got, err := ReadDataset(bad, nil); !errors.Is(err, ErrDataset) || len(got) != 0 {
			t.Errorf("ReadDataset of %s = %v, %v, want ErrDataset", what, got, err)
		}
	}
	block[8] = 9
	if _, _, err := ReadDataset(block, nil); !errors.Is(err, ErrDataset) {
		t.Errorf("ReadDataset of 9 handles in room for 2 = %v, want ErrDataset", err)
	}
	if err := WriteDataset(block[:20], 0, want); !errors.Is(err, ErrDataset) {
		t.Errorf("WriteDataset into 20 bytes = %v, want ErrDataset", err)
	}
}

// A mask covers all elements of its action, one after the other; each needs a legal value.
func TestCheckObs_NamesTheElementWithoutALegalValue(t *testing.T) {
	spec := testkit.Spec(3, 2, true)
	spec.Tensors[0] = hostabi.Tensor{Role: hostabi.RoleAction, DType: hostabi.I32, Rank: 1, Shape: [hostabi.MaxRank]uint32{3}, Counts: []uint32{2, 3, 4}}
	spec.Tensors[6].Shape[0] = 9
	for _, soa := range []bool{false, true} {
		tr := testTrajectory(t, spec, Shape{Steps: 2, Envs: 5, SoA: soa})
		for i := range tr.Bytes(Mask) {
			tr.Bytes(Mask)[i] = 1
		}
		if env, err := tr.CheckObs(1); err != nil {
			t.Fatalf("environment %d: %v", env, err)
		}
		mask := tr.Row(Mask, 1)
		for value := 2; value < 5; value++ {
			mask.Data[3*mask.StrideRow+value*mask.StrideElem] = 0
		}
		const want = "action_mask, for element 1 of the action, has no legal action"
		if env, err := tr.CheckObs(1); env != 3 || !errors.Is(err, ErrOutput) || !strings.Contains(err.Error(), want) {
			t.Errorf("SoA %v: environment %d: %v; want 3 and ...%s", soa, env, err, want)
		}
	}
}
