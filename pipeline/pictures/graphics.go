package pictures

import (
	"encoding/base64"
	"fmt"
)

// Pixels of a cell, as terminals with sixels mostly have them.
const (
	cellWidth  = 8
	cellHeight = 16
)

// levels are how many values each channel has among the colours of sixels: 6 × 6 × 6 are less than the 256 that terminals take.
const levels = 6

// sixels paints by DEC's sixels: bands of six rows, in each a line for each colour.
type sixels struct {
	pixels []byte // numbers of colours
	band   []byte
}

// paint paints a picture, magnified by a whole number.
func (s *sixels) paint(dst []byte, picture Picture, area Area) []byte {
	times := max(1, min(area.Columns*cellWidth/picture.Width, area.Rows*cellHeight/picture.Height))
	w, h := picture.Width*times, picture.Height*times
	s.pixels = s.pixels[:0]
	for y := range h {
		for x := range w {
			rgb := picture.RGB[(y/times*picture.Width+x/times)*3:]
			s.pixels = append(s.pixels, (level(rgb[0])*levels+level(rgb[1]))*levels+level(rgb[2]))
		}
	}
	dst = fmt.Appendf(at(dst, 0, 0), "\x1bP0;1q\"1;1;%d;%d", w, h)
	dst = colours(dst)
	for top := 0; top < h; top += 6 {
		dst = append(s.paintBand(dst, top, w, h), '-')
	}
	return append(dst, "\x1b\\"...)
}

func level(v byte) byte { return byte((int(v)*(levels-1) + 127) / 255) }

// colours defines all colours, in per cent.
func colours(dst []byte) []byte {
	for c := range levels * levels * levels {
		part := func(v int) int { return v * 100 / (levels - 1) }
		dst = fmt.Appendf(dst, "#%d;2;%d;%d;%d", c, part(c/levels/levels), part(c/levels%levels), part(c%levels))
	}
	return dst
}

// paintBand paints six rows from top on.
func (s *sixels) paintBand(dst []byte, top, w, h int) []byte {
	var has [levels * levels * levels]bool
	rows := min(6, h-top)
	for _, c := range s.pixels[top*w : (top+rows)*w] {
		has[c] = true
	}
	for c, there := range has {
		if !there {
			continue
		}
		dst = fmt.Appendf(dst, "#%d", c)
		s.band = s.band[:0]
		for x := range w {
			bits := byte(0)
			for row := range rows {
				if s.pixels[(top+row)*w+x] == byte(c) {
					bits |= 1 << row
				}
			}
			s.band = append(s.band, '?'+bits)
		}
		dst = append(runs(dst, s.band), '$')
	}
	return dst
}

// runs writes characters, equal ones that follow one another as their number.
func runs(dst, line []byte) []byte {
	for i := 0; i < len(line); {
		n := 1
		for i+n < len(line) && line[i+n] == line[i] {
			n++
		}
		if n > 3 {
			dst = append(fmt.Appendf(dst, "!%d", n), line[i])
		} else {
			dst = append(dst, line[i:i+n]...)
		}
		i += n
	}
	return dst
}

// kittyPiece is how many bytes of base64 one escape sequence may have.
const kittyPiece = 4096

// paintKitty sends the pixels as they are, and the terminal scales them. The picture takes the place of the one before, which has the same
// number.
func paintKitty(dst []byte, picture Picture, area Area) []byte {
	w, h := fit(picture.Width, picture.Height, area.Columns*cellWidth, area.Rows*cellHeight)
	columns, rows := max(1, w/cellWidth), max(1, h/cellHeight)
	data := base64.StdEncoding.EncodeToString(picture.RGB[:picture.Width*picture.Height*3])
	dst = at(dst, 0, (area.Columns-columns)/2)
	head := fmt.Sprintf("a=T,f=24,i=1,p=1,q=2,C=1,s=%d,v=%d,c=%d,r=%d,", picture.Width, picture.Height, columns, rows)
	for data != "" {
		n, more := min(len(data), kittyPiece), 0
		if n < len(data) {
			more = 1
		}
		dst = fmt.Appendf(dst, "\x1b_G%sm=%d;%s\x1b\\", head, more, data[:n])
		head, data = "", data[n:]
	}
	return dst
}
