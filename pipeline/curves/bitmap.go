package curves

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"math"

	"golang.org/x/image/vector"
)

// bitmap is a canvas that becomes PNG.
type bitmap struct {
	img  *image.RGBA
	part image.Rectangle // where drawing leaves something
}

var _ canvas = (*bitmap)(nil)

// scale is the pixels of a point: 96 of an inch.
const scale = 96.0 / inch

func newBitmap(wide, high float64) *bitmap {
	img := image.NewRGBA(image.Rect(0, 0, int(math.Ceil(wide*scale)), int(math.Ceil(high*scale))))
	return &bitmap{img, img.Rect}
}

// brush collects closed shapes in points, and paints what any of them covers.
type brush struct {
	*bitmap
	mask *vector.Rasterizer
}

func (b *bitmap) brush() brush { return brush{b, vector.NewRasterizer(b.part.Dx(), b.part.Dy())} }

// pixel returns the place of a point in the mask.
func (b brush) pixel(p point) (x, y float32) {
	return float32(p.x*scale) - float32(b.part.Min.X), float32(p.y*scale) - float32(b.part.Min.Y)
}

func (b brush) add(shape []point) {
	for i, p := range shape {
		if i == 0 {
			b.mask.MoveTo(b.pixel(p))
		} else {
			b.mask.LineTo(b.pixel(p))
		}
	}
	b.mask.ClosePath()
}

func (b brush) paint(c color.NRGBA) { b.mask.Draw(b.img, b.part, image.NewUniform(c), image.Point{}) }

func (b *bitmap) fill(shape []point, c color.NRGBA) {
	brush := b.brush()
	brush.add(shape)
	brush.paint(c)
}

// stroke adds a rectangle for each segment, and a triangle for the gap at each corner. They border on each other and all turn the same way, so that
// none takes from another.
func (b *bitmap) stroke(lines [][]point, c color.NRGBA, width float64) {
	brush := b.brush()
	for _, line := range lines {
		var last point // half the width, across the segment before
		for i, q := range line[1:] {
			p := line[i]
			length := math.Hypot(q.x-p.x, q.y-p.y)
			if length == 0 {
				continue
			}
			n := point{(q.y - p.y) / length * width / 2, (p.x - q.x) / length * width / 2}
			brush.add([]point{{p.x + n.x, p.y + n.y}, {q.x + n.x, q.y + n.y}, {q.x - n.x, q.y - n.y}, {p.x - n.x, p.y - n.y}})
			if last.x*n.y > last.y*n.x {
				brush.add([]point{p, {p.x + last.x, p.y + last.y}, {p.x + n.x, p.y + n.y}})
			} else {
				brush.add([]point{p, {p.x - n.x, p.y - n.y}, {p.x - last.x, p.y - last.y}})
			}
			last = n
		}
	}
	brush.paint(c)
}

func (b *bitmap) write(text string, at point, size float64, end align, turned bool) {
	brush := b.brush()
	start := -widthOf(text, size) * float64(end) / float64(right)
	place := func(p point) (x, y float32) {
		if p.x += start; turned {
			p.x, p.y = p.y, -p.x
		}
		return brush.pixel(point{at.x + p.x, at.y + p.y})
	}
	outline(brush.mask, text, size, place)
	brush.paint(color.NRGBA{A: 255})
}

func (b *bitmap) within(topLeft, bottomRight point, draw func()) {
	all := b.part
	b.part = image.Rect(
		int(math.Round(topLeft.x*scale)), int(math.Round(topLeft.y*scale)),
		int(math.Round(bottomRight.x*scale)), int(math.Round(bottomRight.y*scale)),
	).Intersect(all)
	draw()
	b.part = all
}

func (b *bitmap) writeTo(w io.Writer) error { return png.Encode(w, b.img) }
