package kernels

import (
	"testing"

	"github.com/rlhost/rlhost/gpu/cuda/driver"
	"github.com/rlhost/rlhost/gpu/policy/layer"
)

// convolution is a convolution of images, with what its gradient is made from.
type convolution struct {
	*rig
	images, kernel, stride, margin, outputs int
	in, out                                 []int
	x, g                                    Matrix
	image, gradient, weight                 []float32
	row, gradientRow                        int
}

func newConvolution(t *testing.T, images, kernel, stride, margin, outputs int, in ...int) *convolution {
	shape, err := (&layer.Conv2D{Window: layer.Window{Kernel: kernel, Stride: stride, Pad: margin}, Out: outputs}).Shape([][]int{in})
	if err != nil {
		t.Fatal(err)
	}
	c := &convolution{rig: newRig(t), images: images, kernel: kernel, stride: stride, margin: margin, outputs: outputs, in: in, out: shape}
	c.row, c.gradientRow = layer.Elems(in)+3, layer.Elems(shape)+1
	c.image, c.gradient = c.floats((images-1)*c.row+layer.Elems(in)), c.floats((images-1)*c.gradientRow+layer.Elems(shape))
	c.weight = c.floats(kernel * kernel * in[2] * pad(outputs))
	c.x = Matrix{Data: put(c.rig, c.image...), Row: int32(c.row), Column: 1}
	c.g = Matrix{Data: put(c.rig, c.gradient...), Row: int32(c.gradientRow), Column: 1}
	return c
}

// pixel returns what element k of a window meets in an image, 0 outside of it.
func (c *convolution) pixel(image, row, column, k int) float32 {
	tap, channel := k/c.in[2], k%c.in[2]
	y, x := row*c.stride-c.margin+tap/c.kernel, column*c.stride-c.margin+tap%c.kernel
	if y < 0 || y >= c.in[0] || x < 0 || x >= c.in[1] {
		return 0
	}
	return c.image[image*c.row+(y*c.in[1]+x)*c.in[2]+channel]
}

// cases are strides and margins that leave pixels out, and kernels that do not fill their phases.
func convolutions(t *testing.T) []*convolution {
	return []*convolution{newConvolution(t, 1, 1, 1, 0, 1, 1, 1, 1), newConvolution(t, 3, 3, 1, 1, 5, 6, 7, 3),
		newConvolution(t, 2, 4, 2, 0, 17, 9, 8, 2), newConvolution(t, 3, 3, 2, 1, 4, 8, 7, 5), newConvolution(t, 1, 2, 3, 0, 3, 7, 9, 2)}
}

func TestConv_GradientOfParametersIsInParts(t *testing.T) {
	for _, c := range convolutions(t) {
		windowsOf, depth, parts, runs := c.images*c.out[0]*c.out[1], c.kernel*c.kernel*c.in[2], 2, 16
		want, biases := make([]float32, parts*depth*c.outputs), make([]float32, parts*c.outputs)
		inParts(windowsOf, parts, runs, func(p, lo, hi int) {
			for o := range c.outputs {
				bias := float32(0)
				for k := range depth {
					chain := float32(0)
					for w := lo; w < hi; w++ {
						image, place := w/(c.out[0]*c.out[1]), w%(c.out[0]*c.out[1])
						g := c.gradient[image*c.gradientRow+place*c.outputs+o]
						chain = fma(c.pixel(image, place/c.out[1], place%c.out[1], k), g, chain)
						if k == 0 {
							bias += g
						}
					}
					want[(p*depth+k)*c.outputs+o] += chain
				}
				biases[p*c.outputs+o] += bias
			}
		})
		args := Outer[Windows, Pixels]{A: windows(c.x, c.in, c.out, c.kernel, c.stride, c.margin), B: pixels(c.g, c.out),
			C: Matrix{Data: room[float32](c.rig, len(want)), Row: int32(c.outputs), Column: 1}, Part: int64(depth * c.outputs),
			Rows: int32(windowsOf), Height: int32(depth), Width: int32(c.outputs), Parts: int32(parts), Run: int32(runs)}
		grid := Tiles(depth, c.outputs)
		grid.Z = parts
		run(c.rig, ConvOuterKernel, grid, args)
		same(t, "gradient of the weight", get[float32](c.rig, args.C.Data, len(want)), want)
		if c.stride == 1 { // others leave pixels out
			runShort(c.rig, ConvOuterKernel, grid, args)
			forward := Product[Windows, Matrix, Pixels]{A: args.A, B: Matrix{Data: put(c.rig, c.floats(c.outputs*depth)...), Row: int32(depth), Column: 1},
				C:    pixels(Matrix{Data: room[float32](c.rig, len(c.gradient)), Row: int32(c.gradientRow), Column: 1}, c.out),
				Rows: int32(windowsOf), Columns: int32(c.outputs), Depth: int32(depth)}
			runShort(c.rig, ConvKernel, Tiles(windowsOf, c.outputs), forward)
		}
		sums := Sums[Pixels]{X: args.B, C: room[float32](c.rig, len(biases)), Part: int64(c.outputs), Rows: args.Rows, Columns: int32(c.outputs),
			Parts: int32(parts), Run: int32(runs)}
		grid = driver.Dim{X: Blocks(c.outputs).X, Y: parts}
		run(c.rig, ConvSumsKernel, grid, sums)
		same(t, "gradient of the bias", get[float32](c.rig, sums.C, len(biases)), biases)
		runShort(c.rig, ConvSumsKernel, grid, sums)
	}
}

// phase is the pixels a, a+stride and so on of the padded image, along an axis of so many pixels: the first within the image,
// counted in strides, how many there are, and how many rows of the kernel they meet.
func (c *convolution) phase(a, size int) (first, count, taps int) {
	for y := a; y < size+c.margin; y += c.stride {
		if y >= c.margin {
			if count == 0 {
				first = y / c.stride
			}
			count++
		}
	}
	for k := a; k < c.kernel; k += c.stride {
		taps++
	}
	return first, count, taps
}

func TestConv_PassesGradientsOn(t *testing.T) {
	for _, c := range convolutions(t) {
		dx := c.floats(len(c.image))
		to := put(c.rig, dx...)
		weight := put(c.rig, c.weight...)
		var args Product[Windows, Taps, Pixels]
		var grid driver.Dim
		for a := range c.stride {
			for b := range c.stride {
				top, rows, high := c.phase(a, c.in[0])
				left, columns, wide := c.phase(b, c.in[1])
				if rows == 0 || columns == 0 || high == 0 || wide == 0 {
					continue
				}
				first := (c.stride*top+a-c.margin)*c.in[1] + c.stride*left + b - c.margin
				args = Product[Windows, Taps, Pixels]{
					A: Windows{Data: c.g.Data, Image: int64(c.gradientRow), Height: int32(c.out[0]), Width: int32(c.out[1]), Channels: int32(c.outputs),
						Rows: int32(rows), Columns: int32(columns), KernelColumns: int32(wide), Stride: 1, Top: int32(top - high + 1), Left: int32(left - wide + 1)},
					B: Taps{Weight: weight, Kernel: int32(c.kernel), Channels: int32(c.in[2]), Outputs: int32(c.outputs), Row: int32(pad(c.outputs)),
						Stride: int32(c.stride), Top: int32(a), Left: int32(b), Rows: int32(high), Columns: int32(wide)},
					C: Pixels{Data: to + Address(4*first*c.in[2]), Image: int64(c.row), Rows: int32(rows), Columns: int32(columns),
						Line: int32(c.stride * c.in[1] * c.in[2]), Step: int32(c.stride * c.in[2])},
					Rows: int32(c.images * rows * columns), Columns: int32(c.in[2]), Depth: int32(high * wide * c.outputs), Start: Add}
				grid = Tiles(int(args.Rows), c.in[2])
				run(c.rig, ConvBackKernel, grid, args)
			}
		}
		want := append([]float32(nil), dx...)
		for image := range c.images {
			for pixel := range c.in[0] * c.in[1] {
				for channel := range c.in[2] {
					at := image*c.row + pixel*c.in[2] + channel
					want[at] = c.descend(image, pixel/c.in[1]+c.margin, pixel%c.in[1]+c.margin, channel, want[at])
				}
			}
		}
		same(t, "gradient of the image", get[float32](c.rig, to, len(want)), want)
		if c.stride == 1 { // others leave pixels out
			c.forget(weight) // its rows are padded
			runShort(c.rig, ConvBackKernel, grid, args)
		}
	}
}

// descend adds the gradients of the windows that a pixel of the padded image lies in, the first window first.
func (c *convolution) descend(image, y, x, channel int, sum float32) float32 {
	for row := range c.reach(y) {
		for column := range c.reach(x) {
			oy, ox := y/c.stride-c.reach(y)+1+row, x/c.stride-c.reach(x)+1+column
			ky, kx := y-oy*c.stride, x-ox*c.stride
			for o := range c.outputs {
				g := float32(0)
				if oy >= 0 && oy < c.out[0] && ox >= 0 && ox < c.out[1] {
					g = c.gradient[image*c.gradientRow+(oy*c.out[1]+ox)*c.outputs+o]
				}
				sum = fma(g, c.weight[((ky*c.kernel+kx)*c.in[2]+channel)*pad(c.outputs)+o], sum)
			}
		}
	}
	return sum
}

// reach is how many windows a place meets along an axis.
func (c *convolution) reach(y int) int {
	return (c.kernel - y%c.stride + c.stride - 1) / c.stride
}

func TestPool_GivesGradientsToTheFirstOfEquals(t *testing.T) {
	for _, s := range [][6]int{{1, 1, 1, 1, 1, 0}, {7, 8, 3, 3, 2, 1}, {6, 5, 20, 2, 2, 0}, {5, 5, 2, 3, 1, 1}} {
		in, images := []int{s[0], s[1], s[2]}, 3
		window := layer.Window{Kernel: s[3], Stride: s[4], Pad: s[5]}
		out, err := (&layer.MaxPool{Window: window}).Shape([][]int{in})
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t)
		elems, outs := layer.Elems(in), layer.Elems(out)
		x, d, dx := r.floats(images*elems), r.floats(images*outs), r.floats(images*elems)
		for i := range x {
			x[i] = float32(int(4 * x[i])) // with equals
		}
		args := Pool{X: put(r, x...), Out: room[float32](r, images*outs), Images: int32(images), Height: int32(in[0]), Width: int32(in[1]), Channels: int32(in[2]),
			Rows: int32(out[0]), Columns: int32(out[1]), Kernel: int32(s[3]), Stride: int32(s[4]), Margin: int32(s[5]),
			XImage: int32(elems), OutImage: int32(outs), DImage: int32(outs), DXImage: int32(elems)}
		wantOut, wantDX := make([]float32, images*outs), append([]float32(nil), dx...)
		for i := range wantOut {
			image, row, column, channel := i/outs, i%outs/out[2]/out[1], i%outs/out[2]%out[1], i%out[2]
			best := -1
			for y := max(row*s[4]-s[5], 0); y < min(row*s[4]-s[5]+s[3], in[0]); y++ {
				for z := max(column*s[4]-s[5], 0); z < min(column*s[4]-s[5]+s[3], in[1]); z++ {
					at := image*elems + (y*in[1]+z)*in[2] + channel
					if best < 0 || x[at] > x[best] {
						best = at
					}
				}
			}
			wantOut[i] = x[best]
			wantDX[best] += d[i]
		}
		run(r, PoolKernel, Blocks(images*outs), args)
		same(t, "largest elements", get[float32](r, args.Out, images*outs), wantOut)
		whole := s[3] > s[4] // windows that meet all pixels
		if whole {
			runShort(r, PoolKernel, Blocks(images*outs), args)
		}
		args.Out, args.D, args.DX = 0, put(r, d...), put(r, dx...)
		run(r, PoolBackKernel, Blocks(images*elems), args)
		same(t, "gradients", get[float32](r, args.DX, images*elems), wantDX)
		if whole {
			runShort(r, PoolBackKernel, Blocks(images*elems), args)
		}
	}
}
