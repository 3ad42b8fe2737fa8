package export

import (
	"slices"

	"github.com/rlhost/rlhost/gpu/policy"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// onnxInput is an input of the network while it is written. Its model's input is named by its path and has the type and shape of
// the environment's tensor, with the earlier frames where there are several.
type onnxInput struct {
	*onnxGraph
	*policy.Input
	mean, scale []float32 // running statistics
}

// write appends the steps that prepare an observation, and returns the name of the result.
func (in *onnxInput) write() string {
	shape, k := slices.Clone(in.Shape), in.Frames()
	if k > 1 {
		shape = append([]int{k}, shape...)
	}
	in.value(graphInput, in.Path, onnxTypes[in.DType], shape...)
	x := in.Path
	if onnxTypes[in.DType] != onnxFloat {
		x = in.node("Cast", in.unique(in.Path+".number"), []string{x}, attribute{"to", []int{onnxFloat}})
	}
	switch in.Norm {
	case policy.OneHot:
		return in.oneHot(x)
	case policy.Running:
		x = in.normal(x)
	case policy.Scaled:
		x = in.node("Mul", in.unique(in.Path+".scaled"), []string{x, in.vector(in.Scale)})
	}
	return in.arrange(x)
}

// normal appends the normalisation by running statistics.
func (in *onnxInput) normal(x string) string {
	mean, scale, least, most := in.unique(in.Path+".mean"), in.unique(in.Path+".scale"), in.unique("least"), in.unique("most")
	in.floats(mean, in.Shape, in.mean)
	in.floats(scale, in.Shape, in.scale)
	in.floats(least, nil, []float32{-policy.ObsClip})
	in.floats(most, nil, []float32{policy.ObsClip})
	x = in.node("Sub", in.unique(in.Path+".centred"), []string{x, mean})
	x = in.node("Mul", in.unique(in.Path+".scaled"), []string{x, scale})
	return in.node("Clip", in.unique(in.Path+".normal"), []string{x, least, most})
}

// oneHot appends the comparison of each element with each of its values.
func (in *onnxInput) oneHot(x string) string {
	var elements []int
	var values []float32
	n := layer.Elems(in.Shape)
	for i := range in.Frames() * n {
		for v := range in.Choices[i%n%len(in.Choices)] {
			elements, values = append(elements, i), append(values, float32(in.Start+v))
		}
	}
	x = in.node("Flatten", in.unique(in.Path+".flat"), []string{x}, axis(1))
	x = in.node("Gather", in.unique(in.Path+".each"), []string{x, in.ints(elements...)}, axis(1))
	x = in.node("Equal", in.unique(in.Path+".is"), []string{x, in.vector(values...)})
	return in.node("Cast", in.unique(in.Path+".entered"), []string{x}, attribute{"to", []int{onnxFloat}})
}

// arrange appends nodes that bring pictures into rows of pixels, and frames next to each other.
func (in *onnxInput) arrange(x string) string {
	k := in.Frames()
	switch {
	case len(in.Shape) != 3 && k > 1:
		return in.node("Flatten", in.unique(in.Path+".frames"), []string{x}, axis(1))
	case len(in.Shape) != 3 || k == 1 && !in.CHW:
		return x
	case k == 1:
		return in.node("Transpose", in.unique(in.Path+".hwc"), []string{x}, attribute{"perm", []int{0, 2, 3, 1}})
	}
	perm := []int{0, 2, 3, 1, 4}
	if in.CHW {
		perm = []int{0, 3, 4, 1, 2}
	}
	x = in.node("Transpose", in.unique(in.Path+".hwc"), []string{x}, attribute{"perm", perm})
	return in.node("Reshape", in.unique(in.Path+".frames"), []string{x, in.ints(append([]int{0}, in.Entered()...)...)})
}
