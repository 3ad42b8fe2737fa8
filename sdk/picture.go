package sdk

import "math"

// Picture is what an environment draws on: Height rows of Width pixels of three bytes, black at first. Places are in pixels from the upper
// left corner, with fractions; colours are 0xRRGGBB. What lies outside is cut off.
type Picture struct {
	RGB           []byte
	Width, Height int
}

// Rect fills a rectangle.
func (p *Picture) Rect(x, y, width, height float32, colour uint32) {
	for row := pixel(y, p.Height); row < pixel(y+height, p.Height); row++ {
		p.span(row, x, x+width, colour)
	}
}

// Disc fills a disc around (x, y).
func (p *Picture) Disc(x, y, radius float32, colour uint32) {
	for row := pixel(y-radius, p.Height); row < pixel(y+radius, p.Height); row++ {
		off := float32(row) + 0.5 - y
		if square := float32(radius*radius) - float32(off*off); square > 0 {
			half := float32(math.Sqrt(float64(square)))
			p.span(row, x-half, x+half, colour)
		}
	}
}

// span fills the pixels of a row from left to right.
func (p *Picture) span(row int, left, right float32, colour uint32) {
	for at := pixel(left, p.Width); at < pixel(right, p.Width); at++ {
		i := (row*p.Width + at) * 3
		p.RGB[i], p.RGB[i+1], p.RGB[i+2] = byte(colour>>16), byte(colour>>8), byte(colour)
	}
}

// pixel is the pixel nearest to a place on one axis, from 0 to most.
func pixel(at float32, most int) int {
	switch {
	case !(at > 0):
		return 0
	case at >= float32(most):
		return most
	}
	return int(at + 0.5)
}

// Drawer is an environment that draws pictures of Spec.PictureWidth × Spec.PictureHeight. Drawing changes no state.
type Drawer interface {
	Draw(p *Picture)
}

// BatchDrawer is a Batch, DictBatch or CompositeBatch that draws environment i; see Drawer.
type BatchDrawer interface {
	Draw(i int, p *Picture)
}
