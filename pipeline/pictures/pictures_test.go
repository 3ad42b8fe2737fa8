package pictures

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// noise is a picture of squares of random colours, a square for each so many pixels.
func noise(seed uint64, width, height, square int) Picture {
	random := rand.New(rand.NewPCG(seed, seed))
	p := Picture{RGB: make([]byte, width*height*3), Width: width, Height: height}
	for y := range height {
		for x := range width {
			at := p.RGB[(y*width+x)*3:]
			if x%square > 0 {
				copy(at[:3], p.RGB[(y*width+x-1)*3:])
			} else if y%square > 0 {
				copy(at[:3], p.RGB[((y-1)*width+x)*3:])
			} else {
				at[0], at[1], at[2] = byte(random.IntN(256)), byte(random.IntN(256)), byte(random.IntN(256))
			}
		}
	}
	return p
}

// grid is a terminal that knows half blocks: what its cells show.
type grid struct {
	area         Area
	cells        []cell
	row, column  int
	ink          cell
	written, odd int
}

var control = regexp.MustCompile(`^\x1b\[([0-9;]*)([Hm])`)

func (g *grid) show(text string) {
	for text != "" {
		m := control.FindStringSubmatch(text)
		switch {
		case m != nil && m[2] == "H":
			fmt.Sscanf(m[1], "%d;%d", &g.row, &g.column)
			text = text[len(m[0]):]
		case m != nil:
			g.colour(m[1])
			text = text[len(m[0]):]
		case strings.HasPrefix(text, "▀"):
			if g.column > g.area.Columns || g.row > g.area.Rows {
				g.odd++
				return
			}
			g.cells[(g.row-1)*g.area.Columns+g.column-1] = g.ink
			g.column++
			g.written++
			text = text[len("▀"):]
		default:
			g.odd++
			return
		}
	}
}

func (g *grid) colour(numbers string) {
	var to *[3]byte
	switch {
	case numbers == "":
		g.ink = cell{}
		return
	case strings.HasPrefix(numbers, "38;2;"):
		to = &g.ink.upper
	case strings.HasPrefix(numbers, "48;2;"):
		to = &g.ink.lower
	default:
		g.odd++
		return
	}
	for i, n := range strings.Split(numbers, ";")[2:] {
		v, _ := strconv.Atoi(n)
		to[i] = byte(v)
	}
}

// A picture that has a pixel for each half block is shown as it is, each time, and only what has changed is sent.
func TestBlocks_ShowPicturesAndSendChangesAlone(t *testing.T) {
	area := Area{Columns: 40, Rows: 12}
	g := &grid{area: area, cells: make([]cell, area.Columns*area.Rows)}
	var p Painter
	picture := noise(1, 30, 24, 1)
	for round := range 4 {
		g.show(string(p.Paint(nil, picture, area)))
		for y := range picture.Height {
			for x := range picture.Width {
				c := g.cells[y/2*area.Columns+5+x]
				got := [2][3]byte{c.upper, c.lower}[y%2]
				if want := picture.RGB[(y*30+x)*3:][:3]; !bytes.Equal(got[:], want) {
					t.Fatalf("round %d: pixel %d,%d is %v, want %v", round, x, y, got, want)
				}
			}
		}
		if want := []int{30 * 12, 1, 0, 2}[round]; g.written != want || g.odd > 0 {
			t.Errorf("round %d: %d cells are written, want %d; %d odd", round, g.written, want, g.odd)
		}
		g.written = 0
		switch round {
		case 0:
			picture.RGB[100]++
		case 2:
			picture.RGB[0]++
			picture.RGB[len(picture.RGB)-1]++
		}
	}
	p.Forget()
	if g.show(string(p.Paint(nil, picture, area))); g.written != 30*12 {
		t.Errorf("after forgetting %d cells are written", g.written)
	}
}

// Whatever sizes a picture and a terminal have, nothing is written outside, and a picture of one colour stays one.
func TestBlocks_FitAnySize(t *testing.T) {
	for _, size := range [][4]int{{600, 400, 80, 22}, {160, 210, 80, 22}, {1, 1, 20, 4}, {1000, 1, 33, 7}, {1, 1000, 33, 7}, {7, 5, 300, 100}} {
		area := Area{size[2], size[3]}
		g := &grid{area: area, cells: make([]cell, area.Columns*area.Rows)}
		var p Painter
		picture := Picture{RGB: bytes.Repeat([]byte{10, 20, 30}, size[0]*size[1]), Width: size[0], Height: size[1]}
		if g.show(string(p.Paint(nil, picture, area))); g.odd > 0 || g.written == 0 {
			t.Errorf("%v: %d cells, %d odd", size, g.written, g.odd)
		}
		for _, c := range g.cells {
			if c.upper != ([3]byte{}) && c.upper != [3]byte{10, 20, 30} || c.lower != ([3]byte{}) && c.lower != [3]byte{10, 20, 30} {
				t.Fatalf("%v: a cell is %v", size, c)
			}
		}
	}
	var p Painter
	if got := p.Paint(nil, Picture{}, Area{80, 24}); got != nil {
		t.Errorf("no picture is %q", got)
	}
}

var (
	sixelHead = regexp.MustCompile(`^\x1b\[1;1H\x1bP0;1q"1;1;(\d+);(\d+)`)
	sixelPart = regexp.MustCompile(`^(#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)([?-~])|[?-~]|[$-])`)
)

// sixelPixels reads a picture of sixels.
func sixelPixels(t *testing.T, text string) (w, h int, rgb []byte) {
	t.Helper()
	m := sixelHead.FindStringSubmatch(text)
	if m == nil || !strings.HasSuffix(text, "\x1b\\") {
		t.Fatalf("it begins with %.40q", text)
	}
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	w, h = number(m[1]), number(m[2])
	rgb = make([]byte, w*h*3)
	colours, now, x, y := map[int][3]byte{}, 0, 0, 0
	put := func(bits byte, times int) {
		for ; times > 0; times-- {
			for row := range 6 {
				if bits>>row&1 == 1 {
					c := colours[now]
					copy(rgb[((y+row)*w+x)*3:], c[:])
				}
			}
			x++
		}
	}
	for text = strings.TrimSuffix(text[len(m[0]):], "\x1b\\"); text != ""; {
		m := sixelPart.FindStringSubmatch(text)
		switch {
		case m == nil:
			t.Fatalf("it has %.20q", text)
		case m[2] != "":
			colours[number(m[2])] = [3]byte{byte(number(m[3])), byte(number(m[4])), byte(number(m[5]))}
		case m[6] != "":
			now = number(m[6])
		case m[7] != "":
			put(m[8][0]-'?', number(m[7]))
		case m[0] == "$":
			x = 0
		case m[0] == "-":
			x, y = 0, y+6
		default:
			put(m[0][0]-'?', 1)
		}
		text = text[len(m[0]):]
	}
	return w, h, rgb
}

// Sixels show each pixel in the nearest of their colours, magnified by a whole number.
func TestSixel_ShowsThePicture(t *testing.T) {
	const seed = 5
	picture := noise(seed, 40, 31, 3)
	p := Painter{Form: Sixel}
	w, h, rgb := sixelPixels(t, string(p.Paint(nil, picture, Area{Columns: 20, Rows: 10})))
	if w != 160 || h != 124 {
		t.Fatalf("%d × %d pixels, want 160 × 124", w, h)
	}
	for y := range h {
		for x := range w {
			for c := range 3 {
				got, want := int(rgb[(y*w+x)*3+c])*255/100, int(picture.RGB[(y/4*40+x/4)*3+c])
				if d := got - want; d < -27 || d > 27 {
					t.Fatalf("seed %d: pixel %d,%d has %d, want %d", seed, x, y, got, want)
				}
			}
		}
	}
}

// kitty gets all pixels as they are, in pieces that are not too long.
func TestKitty_SendsThePixels(t *testing.T) {
	picture := noise(7, 90, 60, 1)
	p := Painter{Form: Kitty}
	text := string(p.Paint([]byte("before"), picture, Area{Columns: 80, Rows: 22}))
	pieces := regexp.MustCompile(`\x1b_G([^;]*);([^\x1b]*)\x1b\\`).FindAllStringSubmatch(text, -1)
	var data string
	for i, piece := range pieces {
		if len(piece[2]) > kittyPiece || strings.HasSuffix(piece[1], "m=1") != (i < len(pieces)-1) {
			t.Errorf("piece %d of %d has %s and %d bytes", i, len(pieces), piece[1], len(piece[2]))
		}
		data += piece[2]
	}
	if rgb, err := base64.StdEncoding.DecodeString(data); err != nil || !bytes.Equal(rgb, picture.RGB) {
		t.Errorf("%v: %d bytes of pixels, want %d", err, len(rgb), len(picture.RGB))
	}
	if !strings.HasPrefix(text, "before\x1b[1;") || !strings.Contains(text, "f=24,i=1,p=1,q=2,C=1,s=90,v=60,c=66,r=22,") {
		t.Errorf("it begins with %.80q", text)
	}
}

// BenchmarkBlocks paints a picture of which every pixel changes.
func BenchmarkBlocks(b *testing.B) {
	two := [2]Picture{noise(1, 160, 210, 4), noise(2, 160, 210, 4)}
	var p Painter
	var to []byte
	for i := range b.N {
		to = p.Paint(to[:0], two[i%2], Area{Columns: 80, Rows: 22})
	}
	b.ReportMetric(float64(len(to)), "bytes")
}
