package video

import (
	"cmp"
	"slices"
)

// palette chooses 256 colours for a picture.
type palette struct {
	colours [3 * 256]byte
}

// colour is one in 24 bits.
type colour uint32

func colourAt(rgb []byte) colour { return colour(rgb[0])<<16 | colour(rgb[1])<<8 | colour(rgb[2]) }

// coarse is a colour in five bits a channel.
func (c colour) coarse() colour { return c & 0xf8f8f8 }

// of chooses the colours of a picture and appends the number of each pixel's colour to indexes. A picture with at most 256 colours
// has exactly these; another one has its most frequent ones at five bits a channel, and the nearest of them for the others.
func (p *palette) of(rgb []byte, indexes []byte) []byte {
	if exact, ok := p.exact(rgb); ok {
		for i := 0; i < len(rgb); i += 3 {
			indexes = append(indexes, exact[colourAt(rgb[i:])])
		}
		return indexes
	}
	nearest := p.frequent(rgb)
	for i := 0; i < len(rgb); i += 3 {
		indexes = append(indexes, nearest[colourAt(rgb[i:]).coarse()])
	}
	return indexes
}

func (p *palette) set(i int, c colour) {
	p.colours[3*i], p.colours[3*i+1], p.colours[3*i+2] = byte(c>>16), byte(c>>8), byte(c)
}

// exact makes a palette of all colours of a picture, if they are few enough.
func (p *palette) exact(rgb []byte) (map[colour]byte, bool) {
	index := map[colour]byte{}
	last := colour(1 << 24)
	for i := 0; i < len(rgb); i += 3 {
		c := colourAt(rgb[i:])
		if c == last {
			continue
		}
		last = c
		if _, known := index[c]; known {
			continue
		}
		if len(index) == 256 {
			return nil, false
		}
		p.set(len(index), c)
		index[c] = byte(len(index))
	}
	return index, true
}

// mean is what the pixels of one coarse colour are on average.
type mean struct {
	coarse  colour
	n       int
	r, g, b int
}

func (m *mean) colour() colour { return colour(m.r/m.n)<<16 | colour(m.g/m.n)<<8 | colour(m.b/m.n) }

// frequent makes a palette of the most frequent coarse colours, and returns the nearest one for each that the picture has.
func (p *palette) frequent(rgb []byte) map[colour]byte {
	found := map[colour]*mean{}
	for i := 0; i < len(rgb); i += 3 {
		c := colourAt(rgb[i:]).coarse()
		m := found[c]
		if m == nil {
			m = &mean{coarse: c}
			found[c] = m
		}
		m.n, m.r, m.g, m.b = m.n+1, m.r+int(rgb[i]), m.g+int(rgb[i+1]), m.b+int(rgb[i+2])
	}
	all := make([]*mean, 0, len(found))
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *mean) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.coarse, b.coarse)) })
	chosen := min(256, len(all))
	for i, m := range all[:chosen] {
		p.set(i, m.colour())
	}
	nearest := make(map[colour]byte, len(all))
	for _, m := range all {
		nearest[m.coarse] = p.nearest(m.colour(), chosen)
	}
	return nearest
}

// nearest returns which of the first n colours is least far from c.
func (p *palette) nearest(c colour, n int) byte {
	best, least := 0, 1<<30
	for i := range n {
		r, g, b := int(p.colours[3*i])-int(c>>16), int(p.colours[3*i+1])-int(c>>8&255), int(p.colours[3*i+2])-int(c&255)
		if far := r*r + g*g + b*b; far < least {
			best, least = i, far
		}
	}
	return byte(best)
}
