package trajectory

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/internal/testkit"
)

// An action outside its space is found, of which kind of space it is, and nothing else is.
func TestOutside_NamesTheAction(t *testing.T) {
	pair := [hostabi.MaxRank]uint32{2}
	nan := math.Float32bits(float32(math.NaN()))
	half := math.Float32bits(0.5)
	for _, c := range []struct {
		name   string
		space  hostabi.Tensor
		values [2]uint32 // of environment 1
		want   string
	}{
		{"the first value", hostabi.Tensor{DType: hostabi.I32, N: 3, Start: 2}, [2]uint32{2, 0}, ""},
		{"the last value", hostabi.Tensor{DType: hostabi.I32, N: 3, Start: 2}, [2]uint32{4, 0}, ""},
		{"below a Discrete", hostabi.Tensor{DType: hostabi.I32, N: 3, Start: 2}, [2]uint32{1, 0}, "action is 1, want 2 to 4"},
		{"beyond it", hostabi.Tensor{DType: hostabi.I32, N: 3, Start: 2}, [2]uint32{5, 0}, "action is 5, want 2 to 4"},
		{"negative", hostabi.Tensor{DType: hostabi.I32, N: 3}, [2]uint32{math.MaxUint32, 0}, "action is -1, want 0 to 2"},
		{"an element of a MultiDiscrete", hostabi.Tensor{DType: hostabi.I32, Rank: 1, Shape: pair, Counts: []uint32{3, 2}, Path: "aim"}, [2]uint32{2, 2}, "action aim, element 1, is 2, want 0 to 1"},
		{"bounds of a Box", hostabi.Tensor{DType: hostabi.F32, Rank: 1, Shape: pair, Low: 0.5, High: 0.5}, [2]uint32{half, half}, ""},
		{"beyond a Box", hostabi.Tensor{DType: hostabi.F32, Rank: 1, Shape: pair, Low: 0, High: 0.25}, [2]uint32{half, half}, "action, element 0, is 0.5, want 0 to 0.25"},
		{"NaN in a Box", hostabi.Tensor{DType: hostabi.F32, Rank: 1, Shape: pair, Low: 0, High: 1}, [2]uint32{half, nan}, "action, element 1, is NaN, want 0 to 1"},
		{"a Box without bounds", hostabi.Tensor{DType: hostabi.F32, Rank: 1, Shape: pair, Flags: hostabi.TensorNoLow | hostabi.TensorNoHigh}, [2]uint32{half, half}, ""},
	} {
		spec := testkit.Spec(3, 2, false)
		c.space.Role = hostabi.RoleAction
		spec.Tensors[0] = c.space
		tr := testTrajectory(t, spec, Shape{Steps: 2, Envs: 3})
		tr.DrawActions(1, words(1))
		action := tr.Row(Action, 1)
		for i := range action.Elems {
			binary.LittleEndian.PutUint32(action.Data[action.StrideRow+i*action.StrideElem:], c.values[i])
		}
		of, what := tr.Outside(-1, 1)
		if wantOf := map[bool]int{true: -1, false: 1}[c.want == ""]; what != c.want || of != wantOf {
			t.Errorf("%s: environment %d, %q, want %q", c.name, of, what, c.want)
		}
		if of, what := tr.Outside(2, 1); of != -1 || what != "" {
			t.Errorf("%s: of environment 2 alone it finds %d, %q", c.name, of, what)
		}
		if _, what := tr.Outside(1, 1); what != c.want {
			t.Errorf("%s: of environment 1 alone it finds %q, want %q", c.name, what, c.want)
		}
	}
}
