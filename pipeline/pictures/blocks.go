package pictures

import "strconv"

// cell is a half block: the colours of its upper and of its lower pixel.
type cell struct{ upper, lower [3]byte }

// paintBlocks paints with the character for an upper half, in the colour of the upper pixel on that of the lower one.
func (p *Painter) paintBlocks(dst []byte, picture Picture, area Area) []byte {
	fresh := area != p.area
	if fresh {
		p.area, p.shown = area, make([]cell, area.Columns*area.Rows)
	}
	w, h := fit(picture.Width, picture.Height, area.Columns, 2*area.Rows)
	p.scale(picture, w, h)
	left, top := (area.Columns-w)/2, (2*area.Rows-h)/4
	var ink cell // of what is written now
	inked, next := false, -1
	for row := range (h + 1) / 2 {
		for x := range w {
			c := p.cellAt(w, h, x, row)
			i := (top+row)*area.Columns + left + x
			if !fresh && p.shown[i] == c {
				continue
			}
			p.shown[i] = c
			if i != next || (left+x) == 0 {
				dst = at(dst, top+row, left+x)
			}
			if !inked || ink.upper != c.upper {
				dst = colour(dst, "38", c.upper)
			}
			if !inked || ink.lower != c.lower {
				dst = colour(dst, "48", c.lower)
			}
			dst = append(dst, "▀"...)
			ink, inked, next = c, true, i+1
		}
	}
	if inked {
		dst = append(dst, "\x1b[m"...)
	}
	return dst
}

// cellAt is a cell of the scaled picture. Below its last row it is black.
func (p *Painter) cellAt(w, h, x, row int) (c cell) {
	copy(c.upper[:], p.scaled[(2*row*w+x)*3:])
	if 2*row+1 < h {
		copy(c.lower[:], p.scaled[((2*row+1)*w+x)*3:])
	}
	return c
}

// colour sets the colour of characters, 38, or of what is behind them, 48.
func colour(dst []byte, which string, rgb [3]byte) []byte {
	dst = append(append(append(dst, "\x1b["...), which...), ";2"...)
	for _, v := range rgb {
		dst = strconv.AppendUint(append(dst, ';'), uint64(v), 10)
	}
	return append(dst, 'm')
}
