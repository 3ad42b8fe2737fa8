package curves

import (
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
)

// letters is the font of pictures: PNG has its outlines, SVG takes room for its widths, and the viewer's own sans-serif font.
var letters = sync.OnceValue(func() *sfnt.Font {
	f, err := sfnt.Parse(goregular.TTF)
	if err != nil {
		panic("the font of pictures: " + err.Error())
	}
	return f
})

// perEm is the size at which glyphs are read, in pixels of an em.
const perEm = 1024

// glyphs returns what calls each for a text's glyphs, with the buffer that they are read with. A character that the font lacks has an empty box.
func glyphs(text string, each func(b *sfnt.Buffer, index sfnt.GlyphIndex, advance float64)) {
	var b sfnt.Buffer
	for _, r := range text {
		index, err := letters().GlyphIndex(&b, r)
		if err != nil {
			index = 0
		}
		advance, err := letters().GlyphAdvance(&b, index, fixed.I(perEm), font.HintingNone)
		if err != nil {
			continue
		}
		each(&b, index, float64(advance)/64/perEm)
	}
}

// widthOf returns the width of a text, in the unit of its size.
func widthOf(text string, size float64) (wide float64) {
	glyphs(text, func(_ *sfnt.Buffer, _ sfnt.GlyphIndex, advance float64) { wide += advance * size })
	return wide
}

// outline adds the letters of a text to a mask. Its base line begins at 0, and place says where the mask has a point.
func outline(mask *vector.Rasterizer, text string, size float64, place func(point) (x, y float32)) {
	x := 0.0
	glyphs(text, func(b *sfnt.Buffer, index sfnt.GlyphIndex, advance float64) {
		segments, err := letters().LoadGlyph(b, index, fixed.I(perEm), nil)
		if err != nil {
			return
		}
		at := func(p fixed.Point26_6) (float32, float32) {
			return place(point{x + float64(p.X)/64/perEm*size, float64(p.Y) / 64 / perEm * size})
		}
		for _, s := range segments {
			ax, ay := at(s.Args[0])
			switch s.Op {
			case sfnt.SegmentOpMoveTo:
				mask.ClosePath()
				mask.MoveTo(ax, ay)
			case sfnt.SegmentOpLineTo:
				mask.LineTo(ax, ay)
			case sfnt.SegmentOpQuadTo:
				bx, by := at(s.Args[1])
				mask.QuadTo(ax, ay, bx, by)
			case sfnt.SegmentOpCubeTo:
				bx, by := at(s.Args[1])
				cx, cy := at(s.Args[2])
				mask.CubeTo(ax, ay, bx, by, cx, cy)
			}
		}
		x += advance * size
	})
	mask.ClosePath()
}
