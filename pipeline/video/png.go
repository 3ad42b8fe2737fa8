package video

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math"
)

// apng writes an animated PNG, which has all colours of the pictures.
type apng struct {
	file     io.WriteSeeker
	w        *bufio.Writer
	options  Options
	count    int
	sequence uint32
	packed   bytes.Buffer
	deflate  *zlib.Writer
	filtered []byte
}

// framesAt is where the number of pictures stands in the file: after the signature, the head's chunk, and the length and name of its own.
const framesAt = 8 + 25 + 8

// newPNG writes the head of a PNG that is shown again and again.
func newPNG(file io.WriteSeeker, o Options) (*apng, error) {
	p := &apng{file: file, w: bufio.NewWriterSize(file, 1<<16), options: o}
	p.deflate = zlib.NewWriter(&p.packed)
	if _, err := p.w.WriteString("\x89PNG\r\n\x1a\n"); err != nil {
		return nil, err
	}
	if err := p.chunk("IHDR", append(big(uint32(o.Width), uint32(o.Height)), 8, 2, 0, 0, 0)); err != nil {
		return nil, err
	}
	return p, p.chunk("acTL", big(0, 0)) // end writes how many pictures there are
}

func big(list ...uint32) (data []byte) {
	for _, n := range list {
		data = binary.BigEndian.AppendUint32(data, n)
	}
	return data
}

func (p *apng) chunk(name string, data []byte) error {
	named := append([]byte(name), data...)
	whole := append(big(uint32(len(data))), named...)
	_, err := p.w.Write(append(whole, big(crc32.ChecksumIEEE(named))...))
	return err
}

func (p *apng) add(rgb []byte) error {
	delay := binary.BigEndian.AppendUint16(nil, uint16(p.options.hundredths(p.count)))
	control := append(big(p.next(), uint32(p.options.Width), uint32(p.options.Height), 0, 0), delay...)
	if err := p.chunk("fcTL", append(control, 0, 100, 0, 0)); err != nil {
		return err
	}
	if err := p.pack(rgb); err != nil {
		return err
	}
	p.count++
	if p.count == 1 {
		return p.chunk("IDAT", p.packed.Bytes())
	}
	return p.chunk("fdAT", append(big(p.next()), p.packed.Bytes()...))
}

// next is the number of the next chunk of an animation.
func (p *apng) next() uint32 {
	p.sequence++
	return p.sequence - 1
}

// pack compresses a picture, each row as its difference from the row above: drawn pictures have many equal rows.
func (p *apng) pack(rgb []byte) error {
	stride := p.options.Width * 3
	p.filtered = p.filtered[:0]
	for at := 0; at < len(rgb); at += stride {
		row := rgb[at:][:stride]
		if at == 0 {
			p.filtered = append(append(p.filtered, 0), row...)
			continue
		}
		p.filtered = append(p.filtered, 2)
		above := rgb[at-stride:][:stride]
		for i, v := range row {
			p.filtered = append(p.filtered, v-above[i])
		}
	}
	p.packed.Reset()
	p.deflate.Reset(&p.packed)
	if _, err := p.deflate.Write(p.filtered); err != nil {
		return err
	}
	return p.deflate.Close()
}

func (p *apng) end() error {
	if err := p.chunk("IEND", nil); err != nil {
		return err
	}
	if err := p.w.Flush(); err != nil {
		return err
	}
	if _, err := p.file.Seek(framesAt, io.SeekStart); err != nil {
		return err
	}
	counts := big(uint32(min(p.count, math.MaxInt32)), 0)
	_, err := p.file.Write(append(counts, big(crc32.ChecksumIEEE(append([]byte("acTL"), counts...)))...))
	return err
}

func (p *apng) abort() {}
