package layer

import "fmt"

// Window is how a square slides over an image, by rows and then by columns. Pad pixels are thought around the image on
// each side.
type Window struct {
	Kernel int `json:"kernel" toml:"kernel" doc:"Side of the window of a convolution or a pooling." range:"1 or more" unit:"pixels"`
	Stride int `json:"stride" toml:"stride" doc:"Step of the window." range:"1 or more" unit:"pixels"`
	Pad    int `json:"pad,omitempty" toml:"pad" doc:"Zeros around the picture." range:"0 to kernel - 1" unit:"pixels"`
}

// image returns height, width and channels of the only input.
func image(in [][]int) (h, w, c int, err error) {
	if _, err := one(in); err != nil {
		return 0, 0, 0, err
	}
	if len(in[0]) != 3 {
		return 0, 0, 0, fmt.Errorf("an input of shape %v, want [height width channels]", in[0])
	}
	return in[0][0], in[0][1], in[0][2], nil
}

// places returns how many rows and columns of windows an image has.
func (s *Window) places(h, w int) (rows, cols int, err error) {
	if s.Kernel < 1 || s.Kernel > MaxSide || s.Stride < 1 || s.Stride > MaxSide || s.Pad < 0 || s.Pad >= s.Kernel {
		return 0, 0, fmt.Errorf("kernel %d, stride %d, pad %d: want a kernel and a stride of 1 to %d, and a pad below the kernel",
			s.Kernel, s.Stride, s.Pad, MaxSide)
	}
	if h+2*s.Pad < s.Kernel || w+2*s.Pad < s.Kernel {
		return 0, 0, fmt.Errorf("a kernel of %d does not fit an image of %d×%d with a pad of %d", s.Kernel, h, w, s.Pad)
	}
	return (h+2*s.Pad-s.Kernel)/s.Stride + 1, (w+2*s.Pad-s.Kernel)/s.Stride + 1, nil
}

// MaxSide bounds kernels and strides.
const MaxSide = 1 << 10

// each visits the pixels of an image that lie under each window, in order: the place of the window, the pixel and the
// place in the window.
func (s *Window) each(h, w int, visit func(place, pixel, at int)) {
	rows, cols, _ := s.places(h, w)
	for place := range rows * cols {
		top, left := place/cols*s.Stride-s.Pad, place%cols*s.Stride-s.Pad
		for at := range s.Kernel * s.Kernel {
			y, x := top+at/s.Kernel, left+at%s.Kernel
			if y >= 0 && y < h && x >= 0 && x < w {
				visit(place, y*w+x, at)
			}
		}
	}
}

// String is such as 3×3/2, and 3×3/2 pad 1.
func (s *Window) String() string {
	text := fmt.Sprintf("%d×%d/%d", s.Kernel, s.Kernel, s.Stride)
	if s.Pad > 0 {
		text += fmt.Sprintf(" pad %d", s.Pad)
	}
	return text
}
