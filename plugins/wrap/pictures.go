package wrap

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/rlhost/rlhost/hostabi"
)

// picture is the shape of an observation of bytes.
type picture struct {
	height, width, channels int
	planar                  bool // the channels come first
}

// pictureOf returns the shape of a tensor that is a picture: it says so, or has bytes with two axes.
func pictureOf(t *hostabi.Tensor) (p picture, ok bool) {
	h, w, c := int(t.Shape[0]), int(t.Shape[1]), int(t.Shape[2])
	switch {
	case t.DType != hostabi.U8 || t.Discrete():
	case t.Rank == 2:
		return picture{h, w, 1, false}, true
	case t.Flags&hostabi.TensorImageHWC != 0:
		return picture{h, w, c, false}, true
	case t.Flags&hostabi.TensorImageCHW != 0:
		return picture{w, c, h, true}, true
	}
	return p, false
}

// of returns the tensor of another picture.
func (p picture) of(t hostabi.Tensor) hostabi.Tensor {
	h, w, c := uint32(p.height), uint32(p.width), uint32(p.channels)
	switch {
	case t.Rank == 2:
		t.Shape = [hostabi.MaxRank]uint32{h, w}
	case p.planar:
		t.Shape = [hostabi.MaxRank]uint32{c, h, w}
	default:
		t.Shape = [hostabi.MaxRank]uint32{h, w, c}
	}
	if len(t.Lows)+len(t.Highs) > 0 { // by element
		t.Low, t.High, t.Lows, t.Highs = 0, 255, nil, nil
	}
	return t
}

// painter is a wrapper of environments whose observations differ from the caller's.
type painter interface {
	wrapper
	// paints reports whether an observation is painted, and returns its brush. The brush is for one goroutine.
	paints(index int, t *hostabi.Tensor) (b brush, ok bool)
}

// pictureMaker is a wrapper that turns observed pictures into others.
type pictureMaker interface {
	// becomes returns the new form of a picture; ok is false if it does not change.
	becomes(p picture) (to picture, ok bool)
	// brush returns the brush for a picture.
	brush(p picture) brush
}

// brush makes one picture of another, both dense. It does not allocate.
type brush interface{ paint(dst, src []byte) }

// brushOf is painter.paints of a wrapper that makes pictures.
func brushOf(c pictureMaker, t *hostabi.Tensor) (b brush, ok bool) {
	p, ok := observedPicture(t)
	if ok {
		_, ok = c.becomes(p)
	}
	if !ok {
		return nil, false
	}
	return c.brush(p), true
}

// describePictures changes a description into that of environments with a painter around them.
func describePictures(s *hostabi.EnvSpec, c pictureMaker, none string) error {
	s.Tensors = slices.Clone(s.Tensors)
	found := false
	for i := range s.Tensors {
		t := &s.Tensors[i]
		if p, ok := observedPicture(t); ok {
			if to, changes := c.becomes(p); changes {
				*t, found = to.of(*t), true
			}
		}
	}
	if !found {
		return errors.New(none)
	}
	s.Caps &^= hostabi.CapStrides | hostabi.CapPreferSoA
	return nil
}

// observedPicture is pictureOf for observations alone.
func observedPicture(t *hostabi.Tensor) (p picture, ok bool) {
	if t.Role != hostabi.RoleObservation && t.Role != hostabi.RoleFinalObservation {
		return p, false
	}
	return pictureOf(t)
}

// grayscale makes one channel of three: the luma of ITU-R BT.601, 0.299 R + 0.587 G + 0.114 B, in weights of 1/65536 and rounded to
// the nearest, as Pillow computes it. OpenCV's weights of 1/32768 differ from it by 1 at most.
type grayscale struct {
	On bool `toml:"grayscale" doc:"Makes one channel of three." range:"true" default:""`
}

func (c *grayscale) validate(bad func(key, reason, help string)) { onlyOn("grayscale", c.On, bad) }

func (c *grayscale) describe(s *hostabi.EnvSpec) error {
	return describePictures(s, c, "none of its observations is a picture of three channels")
}

func (c *grayscale) becomes(p picture) (to picture, ok bool) {
	to = p
	to.channels = 1
	return to, p.channels == 3
}

func (c *grayscale) paints(_ int, t *hostabi.Tensor) (brush, bool) { return brushOf(c, t) }

func (c *grayscale) brush(p picture) brush {
	if p.planar {
		return &luma{step: 1, plane: p.height * p.width}
	}
	return &luma{step: 3, plane: 1}
}

// luma reads red, green and blue of a pixel plane bytes apart, and pixels step bytes apart.
type luma struct{ step, plane int }

func (l *luma) paint(dst, src []byte) {
	red, green, blue := src, src[l.plane:], src[2*l.plane:]
	for i := range dst {
		at := i * l.step
		dst[i] = byte((19595*uint32(red[at]) + 38470*uint32(green[at]) + 7471*uint32(blue[at]) + 1<<15) >> 16)
	}
}

// resize makes pictures of another height and width. Along an axis that shrinks an element is the mean of the area that it covers, as
// with OpenCV's INTER_AREA; along an axis that grows it is interpolated between the two nearest. All of it is computed in integers
// and rounded once, to the nearest, up where two are.
type resize struct {
	Size []int `toml:"resize" doc:"Resizes pictures to this height and width." range:"1 to 4096 each" unit:"pixels" default:""`
}

// maxSide bounds the sides of pictures, so that the weights of a pixel add up to less than 2²⁸.
const maxSide = 4096

func (c *resize) validate(bad func(key, reason, help string)) {
	if len(c.Size) != 2 || slices.Min(c.Size) < 1 || slices.Max(c.Size) > maxSide {
		bad("resize", fmt.Sprintf("is %v, want height and width, 1 to %d each", c.Size, maxSide), "[84, 84]")
	}
}

func (c *resize) describe(s *hostabi.EnvSpec) error {
	for i := range s.Tensors {
		if p, ok := observedPicture(&s.Tensors[i]); ok && max(p.height, p.width) > maxSide {
			return fmt.Errorf("a picture has %d x %d pixels, at most %d x %d can be resized", p.height, p.width, maxSide, maxSide)
		}
	}
	return describePictures(s, c, fmt.Sprintf("it observes no picture of bytes of another size than %d x %d", c.Size[0], c.Size[1]))
}

func (c *resize) becomes(p picture) (to picture, ok bool) {
	to = p
	to.height, to.width = c.Size[0], c.Size[1]
	return to, to != p
}

func (c *resize) paints(_ int, t *hostabi.Tensor) (brush, bool) { return brushOf(c, t) }

func (c *resize) brush(p picture) brush {
	to, _ := c.becomes(p)
	r := &resized{from: p, to: to, rows: newAxis(p.height, to.height), columns: newAxis(p.width, to.width)}
	if p.planar { // a picture of one channel after the other
		r.planes, r.from.channels, r.to.channels = p.channels, 1, 1
	} else {
		r.planes = 1
	}
	total := uint64(r.rows.total) * uint64(r.columns.total)
	r.half = total / 2
	if total > 1 {
		r.inverse = ^uint64(0)/total + 1
	}
	r.sums = make([]uint32, p.width*r.from.channels)
	return r
}

// resized scales pictures from one size to another: first sums of rows, then of columns.
type resized struct {
	from, to      picture // of each plane
	planes        int
	rows, columns axis
	half, inverse uint64   // of all weights of an element: half of them, and 2⁶⁴ divided by them, rounded up; 0 for a single one
	sums          []uint32 // of a row of the new picture, by column and channel of the old one
}

func (r *resized) paint(dst, src []byte) {
	stride, made := len(r.sums), r.to.width*r.to.channels
	for range r.planes {
		for y := range r.to.height {
			r.sumRows(y, src)
			r.sumColumns(dst[y*made:][:made])
		}
		src, dst = src[r.from.height*stride:], dst[r.to.height*made:]
	}
}

// sumRows makes the sums of the rows that row y of the new picture is made of.
func (r *resized) sumRows(y int, src []byte) {
	stride := len(r.sums)
	for k, weight := range r.rows.of(y) {
		row := src[(r.rows.first[y]+k)*stride:][:stride]
		if k == 0 {
			for i, v := range row {
				r.sums[i] = weight * uint32(v)
			}
			continue
		}
		for i, v := range row {
			r.sums[i] += weight * uint32(v)
		}
	}
}

// sumColumns makes a row of the new picture of the sums. A sum is less than 2³⁶ and its weights add up to less than 2²⁸, so the
// product with the inverse, rounded down, is the quotient.
func (r *resized) sumColumns(dst []byte) {
	channels := r.to.channels
	for x := range r.to.width {
		weights, at := r.columns.of(x), r.columns.first[x]*channels
		for c := range channels {
			sum := r.half
			for k, weight := range weights {
				sum += uint64(weight) * uint64(r.sums[at+k*channels+c])
			}
			if r.inverse != 0 {
				sum, _ = bits.Mul64(sum, r.inverse)
			}
			dst[x*channels+c] = byte(sum)
		}
	}
}

// axis says which elements of an old axis an element of a new one is made of, from first on, and by which weights.
type axis struct {
	first   []int
	ends    []int // of the element's weights
	weights []uint32
	total   uint32 // of each element's weights
}

func (a *axis) of(i int) []uint32 {
	begin := 0
	if i > 0 {
		begin = a.ends[i-1]
	}
	return a.weights[begin:a.ends[i]]
}

func (a *axis) add(first int, weights ...uint32) {
	a.first = append(a.first, first)
	a.weights = append(a.weights, weights...)
	a.ends = append(a.ends, len(a.weights))
}

func newAxis(from, to int) axis {
	switch {
	case from == to:
		return sameAxis(from)
	case from > to:
		return shrunkAxis(from, to)
	}
	return grownAxis(from, to)
}

func sameAxis(n int) axis {
	a := axis{total: 1}
	for i := range n {
		a.add(i, 1)
	}
	return a
}

// shrunkAxis counts in units of which an old element has to and a new one from.
func shrunkAxis(from, to int) axis {
	a := axis{total: uint32(from)}
	for i := range to {
		begin, end := i*from, (i+1)*from
		first := begin / to
		var weights []uint32
		for k := first; k*to < end; k++ {
			weights = append(weights, uint32(min(end, (k+1)*to)-max(begin, k*to)))
		}
		a.add(first, weights...)
	}
	return a
}

// grownAxis puts the middle of each new element between the middles of two old ones, or at the outermost one.
func grownAxis(from, to int) axis {
	a := axis{total: uint32(2 * to)}
	for i := range to {
		at := (2*i+1)*from - to // in parts of 1/(2 to), from the middle of the first old element
		first, part := at/(2*to), at%(2*to)
		switch {
		case at <= 0:
			a.add(0, a.total)
		case first >= from-1:
			a.add(from-1, a.total)
		default:
			a.add(first, a.total-uint32(part), uint32(part))
		}
	}
	return a
}
