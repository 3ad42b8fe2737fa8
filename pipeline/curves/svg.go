package curves

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// svg is a canvas that becomes SVG.
type svg struct{ out bytes.Buffer }

var _ canvas = (*svg)(nil)

func newSVG(wide, high float64) *svg {
	s := new(svg)
	fmt.Fprintf(&s.out, `<svg xmlns="http://www.w3.org/2000/svg" width="%spt" height="%spt" viewBox="0 0 %s %s" font-family="sans-serif">`+"\n",
		short(wide), short(high), short(wide), short(high))
	return s
}

func (s *svg) fill(shape []point, c color.NRGBA) {
	s.path([][]point{shape}, "Z")
	fmt.Fprintf(&s.out, `" fill="%s" fill-opacity="%.3g"/>`+"\n", hex(c), float64(c.A)/255)
}

func (s *svg) stroke(lines [][]point, c color.NRGBA, width float64) {
	s.path(lines, "")
	fmt.Fprintf(&s.out, `" fill="none" stroke="%s" stroke-width="%g" stroke-linejoin="bevel"/>`+"\n", hex(c), width)
}

// path begins an element with lines, each with an end.
func (s *svg) path(lines [][]point, end string) {
	s.out.WriteString(`<path d="`)
	for _, line := range lines {
		for i, p := range line {
			s.out.WriteByte("ML"[min(i, 1)])
			s.out.WriteString(short(p.x))
			s.out.WriteByte(' ')
			s.out.WriteString(short(p.y))
		}
		s.out.WriteString(end)
	}
}

func (s *svg) write(text string, at point, size float64, end align, turned bool) {
	if text == "" {
		return
	}
	turn := ""
	if turned {
		turn = fmt.Sprintf(` transform="rotate(-90 %s %s)"`, short(at.x), short(at.y))
	}
	fmt.Fprintf(&s.out, `<text x="%s" y="%s" font-size="%g" text-anchor="%s"%s>%s</text>`+"\n",
		short(at.x), short(at.y), size, [...]string{"start", "middle", "end"}[end], turn, html.EscapeString(strings.Map(printable, text)))
}

func (s *svg) within(topLeft, bottomRight point, draw func()) {
	x, y, w, h := short(topLeft.x), short(topLeft.y), short(bottomRight.x-topLeft.x), short(bottomRight.y-topLeft.y)
	fmt.Fprintf(&s.out, `<svg x="%s" y="%s" width="%s" height="%s" viewBox="%s %s %s %s">`+"\n", x, y, w, h, x, y, w, h)
	draw()
	s.out.WriteString("</svg>\n")
}

func (s *svg) writeTo(w io.Writer) error {
	s.out.WriteString("</svg>\n")
	_, err := s.out.WriteTo(w)
	return err
}

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// short writes a length to the hundredth of a point.
func short(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

// printable replaces what XML does not allow in a text.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
}
