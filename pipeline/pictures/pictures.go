package pictures

import "strconv"

// Picture is one in colour: Height rows of Width pixels of three bytes.
type Picture struct {
	RGB           []byte
	Width, Height int
}

// Area is the part of a terminal that a picture has, from its upper left corner.
type Area struct{ Columns, Rows int }

// Form is how a picture is shown.
type Form string

// Forms.
const (
	Blocks Form = "blocks" // half blocks, two pixels in a cell, which every terminal with colours shows
	Sixel  Form = "sixel"
	Kitty  Form = "kitty"
)

// Painter paints pictures that follow one another in the same area. The zero value of the other fields paints the first. It belongs to one
// goroutine.
type Painter struct {
	Form Form

	area   Area
	shown  []cell // what the cells of the area show
	scaled []byte
	sixel  sixels
}

// Forget says that the terminal no longer shows what was painted.
func (p *Painter) Forget() { p.area = Area{} }

// Paint appends what a terminal must be sent to show a picture, as large as fits, to dst. Of half blocks only the cells are sent that have
// changed since the last call.
func (p *Painter) Paint(dst []byte, picture Picture, area Area) []byte {
	if picture.Width < 1 || picture.Height < 1 || area.Columns < 1 || area.Rows < 1 {
		return dst
	}
	switch p.Form {
	case Sixel:
		return p.sixel.paint(dst, picture, area)
	case Kitty:
		return paintKitty(dst, picture, area)
	}
	return p.paintBlocks(dst, picture, area)
}

// fit returns the size of a picture, of square pixels, that is scaled into a box.
func fit(width, height, boxWidth, boxHeight int) (w, h int) {
	if width*boxHeight > height*boxWidth {
		return boxWidth, max(1, height*boxWidth/width)
	}
	return max(1, width*boxHeight/height), boxHeight
}

// scale writes a picture of w × h pixels into p.scaled: where that is smaller each pixel is the mean of all that it stands for.
func (p *Painter) scale(from Picture, w, h int) {
	p.scaled = p.scaled[:0]
	for y := range h {
		top, bottom := y*from.Height/h, max((y+1)*from.Height/h, y*from.Height/h+1)
		for x := range w {
			left, right := x*from.Width/w, max((x+1)*from.Width/w, x*from.Width/w+1)
			mean := from.mean(left, right, top, bottom)
			p.scaled = append(p.scaled, mean[:]...)
		}
	}
}

// mean is the mean colour of a rectangle of pixels.
func (p *Picture) mean(left, right, top, bottom int) [3]byte {
	var r, g, b int
	for y := top; y < bottom; y++ {
		row := p.RGB[(y*p.Width+left)*3 : (y*p.Width+right)*3]
		for i := 0; i+2 < len(row); i += 3 {
			r, g, b = r+int(row[i]), g+int(row[i+1]), b+int(row[i+2])
		}
	}
	n := (right - left) * (bottom - top)
	return [3]byte{byte(r / n), byte(g / n), byte(b / n)}
}

// at moves the cursor; both count from 0.
func at(dst []byte, row, column int) []byte {
	dst = strconv.AppendInt(append(dst, "\x1b["...), int64(row+1), 10)
	dst = strconv.AppendInt(append(dst, ';'), int64(column+1), 10)
	return append(dst, 'H')
}
