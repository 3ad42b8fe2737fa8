package video

import (
	"bufio"
	"compress/lzw"
	"encoding/binary"
)

// gif writes an animated GIF, in which each picture has a palette of its own and only the part that differs from the one before.
type gif struct {
	w       *bufio.Writer
	options Options
	before  []byte
	count   int
	palette palette
	indexes []byte
}

// shortest is how many hundredths of a second browsers show a picture at least: they take less for no speed at all.
const shortest = 2

// newGIF writes the head of a GIF that is shown again and again.
func newGIF(w *bufio.Writer, o Options) (*gif, error) {
	g := &gif{w: w, options: o}
	head := append([]byte("GIF89a"), g.numbers(o.Width, o.Height)...)
	head = append(head, 0x70, 0, 0) // no palette for all
	head = append(head, "\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00"...)
	_, err := w.Write(head)
	return g, err
}

func (g *gif) numbers(list ...int) (data []byte) {
	for _, n := range list {
		data = binary.LittleEndian.AppendUint16(data, uint16(n))
	}
	return data
}

func (g *gif) add(rgb []byte) error {
	x, y, w, h := g.changed(rgb)
	g.before = append(g.before[:0], rgb...)
	part := make([]byte, 0, w*h*3)
	for row := y; row < y+h; row++ {
		part = append(part, rgb[(row*g.options.Width+x)*3:][:w*3]...)
	}
	g.indexes = g.palette.of(part, g.indexes[:0])
	control := append([]byte{0x21, 0xf9, 4, 0x04}, g.numbers(max(shortest, g.options.hundredths(g.count)))...)
	g.count++
	head := append(append(control, 0, 0, 0x2c), g.numbers(x, y, w, h)...)
	head = append(append(head, 0x87), g.palette.colours[:]...) // 256 colours of its own
	if _, err := g.w.Write(append(head, 8)); err != nil {
		return err
	}
	blocks := &blockWriter{w: g.w}
	packed := lzw.NewWriter(blocks, lzw.LSB, 8)
	if _, err := packed.Write(g.indexes); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return blocks.end()
}

// changed returns the smallest rectangle that has all pixels that differ from the picture before, one pixel where none does.
func (g *gif) changed(rgb []byte) (x, y, w, h int) {
	width, height := g.options.Width, g.options.Height
	if g.before == nil {
		return 0, 0, width, height
	}
	left, top, right, bottom := width, height, 0, 0
	for row := range height {
		now, before := rgb[row*width*3:][:width*3], g.before[row*width*3:][:width*3]
		if string(now) == string(before) {
			continue
		}
		top, bottom = min(top, row), row+1
		for i := range now {
			if now[i] != before[i] {
				left, right = min(left, i/3), max(right, i/3+1)
			}
		}
	}
	if bottom == 0 {
		return 0, 0, 1, 1
	}
	return left, top, right - left, bottom - top
}

func (g *gif) end() error {
	if err := g.w.WriteByte(0x3b); err != nil {
		return err
	}
	return g.w.Flush()
}

func (g *gif) abort() {}

// blockWriter cuts bytes into blocks of 255, each after its length.
type blockWriter struct {
	w     *bufio.Writer
	block [255]byte
	n     int
}

// Write is io.Writer's.
func (b *blockWriter) Write(data []byte) (int, error) {
	written := len(data)
	for len(data) > 0 {
		n := copy(b.block[b.n:], data)
		b.n, data = b.n+n, data[n:]
		if b.n == len(b.block) {
			if err := b.flush(); err != nil {
				return 0, err
			}
		}
	}
	return written, nil
}

func (b *blockWriter) flush() error {
	if b.n == 0 {
		return nil
	}
	if err := b.w.WriteByte(byte(b.n)); err != nil {
		return err
	}
	_, err := b.w.Write(b.block[:b.n])
	b.n = 0
	return err
}

func (b *blockWriter) end() error {
	if err := b.flush(); err != nil {
		return err
	}
	return b.w.WriteByte(0)
}
