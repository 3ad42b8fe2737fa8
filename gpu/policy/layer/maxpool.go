package layer

import (
	"fmt"
	"math"
)

// MaxPool is the largest element of each channel under each window of an image [height][width][channels]. Its gradient
// belongs to the first of equal elements. Places outside the image do not count.
type MaxPool struct{ Window }

var _ Op = (*MaxPool)(nil)

// Shape is [rows][columns][channels].
func (m *MaxPool) Shape(in [][]int) ([]int, error) {
	h, w, c, err := image(in)
	if err != nil {
		return nil, err
	}
	rows, cols, err := m.places(h, w)
	return []int{rows, cols, c}, err
}

// Params are none.
func (m *MaxPool) Params([][]int) []Tensor { return nil }

// Forward is Op's.
func (m *MaxPool) Forward(p *Pass) {
	for i := range p.Out {
		p.Out[i] = math.Inf(-1)
	}
	m.meet(p, func(x, out int) { p.Out[out] = math.Max(p.Out[out], p.In[0][x]) })
}

// Backward is Op's.
func (m *MaxPool) Backward(p *Pass) {
	taken := make([]bool, len(p.Out))
	m.meet(p, func(x, out int) {
		if !taken[out] && p.In[0][x] == p.Out[out] {
			taken[out] = true
			p.DIn[0][x] += p.DOut[out]
		}
	})
}

// meet visits every element of the input with each element of the output that it may be.
func (m *MaxPool) meet(p *Pass, visit func(x, out int)) {
	h, w, channels := p.Shapes[0][0], p.Shapes[0][1], p.Shapes[0][2]
	from, to := len(p.In[0])/p.Rows, len(p.Out)/p.Rows
	for r := range p.Rows {
		m.each(h, w, func(place, pixel, _ int) {
			for k := range channels {
				visit(r*from+pixel*channels+k, r*to+place*channels+k)
			}
		})
	}
}

// String is such as maxpool(3×3/2 pad 1).
func (m *MaxPool) String() string { return fmt.Sprintf("maxpool(%v)", &m.Window) }
