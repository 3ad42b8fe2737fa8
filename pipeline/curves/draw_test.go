package curves

import (
	"bytes"
	"encoding/xml"
	"image"
	"image/color"
	"image/png"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// shown is a picture as pixels, with its layout.
type shown struct {
	image.Image
	at         Layout
	wide, high float64
}

func show(t *testing.T, p Picture) shown {
	t.Helper()
	var out bytes.Buffer
	p.Format = "png"
	if err := Draw(&out, p); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	at, err := LayoutOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return shown{img, at, float64(img.Bounds().Dx()), float64(img.Bounds().Dy())}
}

// place returns the pixel of a value, by the layout.
func (s *shown) place(x, y float64) (px, py int) {
	right := (x - s.at.MinX) / (s.at.MaxX - s.at.MinX)
	up := (y - s.at.MinY) / (s.at.MaxY - s.at.MinY)
	return int((s.at.Left + right*(s.at.Right-s.at.Left)) * s.wide), int((s.at.Bottom - up*(s.at.Bottom-s.at.Top)) * s.high)
}

// has reports whether a pixel at most one from a place has nearly a colour.
func (s *shown) has(x, y int, want color.NRGBA) bool {
	for dx := -1; dx <= 1; dx++ {
		for dy := -1; dy <= 1; dy++ {
			got := color.NRGBAModel.Convert(s.At(x+dx, y+dy)).(color.NRGBA)
			if far(got.R, want.R)+far(got.G, want.G)+far(got.B, want.B)+far(got.A, want.A) < 60 {
				return true
			}
		}
	}
	return false
}

func far(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

// cover returns what covers a part of a clear picture, in pixels.
func (s *shown) cover(r image.Rectangle) (total float64) {
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			_, _, _, a := s.At(x, y).RGBA()
			total += float64(a) / 0xffff
		}
	}
	return total
}

// line is a line of one run.
func line(label string, x, y []float64) Line {
	return Line{label, Band{X: x, Mean: y, Low: y, High: y, Curves: 1}}
}

// A page finds values by the layout, so a picture has its lines where the layout says.
func TestLayoutOf_SaysWhereLinesAre(t *testing.T) {
	t.Parallel()
	for _, p := range []Picture{
		{Lines: []Line{line("a", []float64{0, 40, 100}, []float64{-3, 7, 12})}},
		{
			Title: "a title", X: "env steps", Y: "reward", Width: 5, Height: 2.6, Clear: true,
			Lines: []Line{line("", []float64{0, 4e9, 1e10}, []float64{-3e9, 7, 12e9})},
		},
		{X: "env steps", Width: 9, Height: 4, Lines: []Line{line("a", []float64{1e6, 1e6 + 1, 1e6 + 3}, []float64{5, 6, 5.5})}},
	} {
		s, b := show(t, p), p.Lines[0].Band
		for i := range b.X {
			if x, y := s.place(b.X[i], b.Mean[i]); !s.has(x, y, colourOf(0)) {
				t.Errorf("%+v: no line at %v, %v, the pixel %d, %d", s.at, b.X[i], b.Mean[i], x, y)
			}
		}
	}
}

func TestDraw_ShowsAPartOfTheAxis(t *testing.T) {
	t.Parallel()
	p := Picture{Lines: []Line{line("", []float64{0, 100}, []float64{0, 100})}, Marks: []Mark{{X: 10, Kind: 2}, {X: 55, Kind: 2}}, From: 40, To: 60}
	s := show(t, p)
	if want := (Layout{s.at.Left, s.at.Top, s.at.Right, s.at.Bottom, 40, 60, 0, 100}); s.at != want {
		t.Errorf("%+v, want %+v", s.at, want)
	}
	if x, y := s.place(50, 50); !s.has(x, y, colourOf(0)) {
		t.Error("the line is not in the middle")
	}
	if x, y := s.place(55, 90); !s.has(x, y, color.NRGBA{110, 110, 110, 255}) {
		t.Error("no mark at 55")
	}
	outside := int(s.at.Left*s.wide) - 12
	for y := range int(s.high) {
		if s.has(outside, y, colourOf(0)) {
			t.Fatalf("the line is drawn outside its part at %d, %d", outside, y)
		}
	}
}

// Dashed marks cover two thirds of the height, dotted ones a third, solid ones all of it.
func TestDraw_MarksDifferByKind(t *testing.T) {
	t.Parallel()
	p := Picture{Clear: true, Lines: []Line{line("", []float64{0, 1000}, []float64{0, 0})}, Marks: []Mark{{333, 0}, {555, 1}, {777, 2}}}
	s := show(t, p)
	high := (s.at.Bottom - s.at.Top) * s.high
	for _, m := range p.Marks {
		x, _ := s.place(m.X, 0)
		share := s.cover(image.Rect(x-2, int(s.at.Top*s.high), x+3, int(s.at.Bottom*s.high))) / (scale * high)
		// What crosses a mark adds a little: the line, the grid.
		if want := []float64{2.0 / 3, 1.0 / 3, 1}[m.Kind]; math.Abs(share-want) > 0.08 {
			t.Errorf("a mark of kind %d covers %.2f of the height, want %.2f", m.Kind, share, want)
		}
	}
}

func TestDraw_TheIntervalIsPale(t *testing.T) {
	t.Parallel()
	l := line("", []float64{0, 10}, []float64{0, 10})
	l.Band.Low, l.Band.High, l.Band.Curves = []float64{-20, -10}, []float64{20, 30}, 3
	s := show(t, Picture{Lines: []Line{l}})
	if s.at.MinY != -20 || s.at.MaxY != 30 {
		t.Errorf("the axis is from %v to %v", s.at.MinY, s.at.MaxY)
	}
	c, white := colourOf(0), color.NRGBA{255, 255, 255, 255}
	pale := func(v uint8) uint8 { return uint8((int(v)*60 + 255*195) / 255) }
	for y, want := range map[float64]color.NRGBA{4.6: c, -4: {pale(c.R), pale(c.G), pale(c.B), 255}, 28: white, -19: white} {
		if x, y := s.place(4.6, y); !s.has(x, y, want) {
			t.Errorf("the pixel %d, %d is %v, want %v", x, y, s.At(x, y), want)
		}
	}
}

// A stroke covers its length times its width: its parts do not overlap where they meet, and leave nothing out at corners.
func TestBitmap_StrokesAreEven(t *testing.T) {
	t.Parallel()
	const width = 6
	for name, c := range map[string]struct {
		path []point
		want float64 // square points
	}{
		"straight":   {[]point{{10, 20}, {110, 20}}, 100 * width},
		"in parts":   {[]point{{10, 20}, {30, 20}, {30, 20}, {80, 20}, {110, 20}}, 100 * width},
		"right turn": {[]point{{10, 20}, {60, 20}, {60, 70}}, 100*width - width*width/4 + width*width/8},
		"left turn":  {[]point{{10, 70}, {60, 70}, {60, 20}}, 100*width - width*width/4 + width*width/8},
	} {
		b := newBitmap(120, 90)
		b.stroke([][]point{c.path}, color.NRGBA{A: 255}, width)
		s := shown{Image: b.img}
		if got := s.cover(b.img.Rect) / scale / scale; math.Abs(got-c.want) > c.want/100 {
			t.Errorf("%s: %.1f square points, want %.1f", name, got, c.want)
		}
	}
}

// Text of a bitmap is as wide as the layout takes it to be, ends where it is told to, and runs upwards where it is turned.
func TestBitmap_TextHasItsPlace(t *testing.T) {
	t.Parallel()
	const text, size = "Hamburgefontsiv Ж 0.25M", 20
	wide := widthOf(text, size)
	if wide < 5*size || wide > 20*size {
		t.Fatalf("%q is %.1f wide", text, wide)
	}
	for _, turned := range []bool{false, true} {
		for end, from := range map[align]float64{left: 0, middle: -wide / 2, right: -wide} {
			b := newBitmap(1000, 1000)
			b.write(text, point{500, 500}, size, end, turned)
			s, box := shown{Image: b.img}, image.Rectangle{}
			for y := range 1334 {
				for x := range 1334 {
					if _, _, _, a := s.At(x, y).RGBA(); a > 0x8000 {
						box = box.Union(image.Rect(x, y, x+1, y+1))
					}
				}
			}
			want := [4]float64{500 + from, 500 - size, 500 + from + wide, 500 + size/3} // left, top, right, bottom
			if turned {
				want = [4]float64{500 - size, 500 - from - wide, 500 + size/3, 500 - from}
			}
			got := [4]float64{float64(box.Min.X) / scale, float64(box.Min.Y) / scale, float64(box.Max.X) / scale, float64(box.Max.Y) / scale}
			for i := range want {
				if math.Abs(got[i]-want[i]) > size/3 {
					t.Errorf("aligned %d, turned %t: the letters are within %.1f, want %.1f", end, turned, got, want)
					break
				}
			}
		}
	}
}

// Names are any text: a picture is XML with it, whatever it has.
func TestDraw_SVGHasAnyText(t *testing.T) {
	t.Parallel()
	const text = "a<b>&\"'\x00\x1b\xff\u2028 é Ж \U0001f600"
	var out bytes.Buffer
	picture := Picture{Format: "svg", Title: text, X: text, Y: text, Lines: []Line{line(text, []float64{1}, []float64{1})}}
	if err := Draw(&out, picture); err != nil {
		t.Fatal(err)
	}
	var svg struct {
		Text []string `xml:"text"`
	}
	if err := xml.Unmarshal(out.Bytes(), &svg); err != nil {
		t.Fatalf("%v:\n%s", err, out.String())
	}
	const want = "a<b>&\"'\ufffd\ufffd\ufffd\ufffd é Ж \U0001f600"
	if got := strings.Count(strings.Join(svg.Text, "\n"), want); got != 4 {
		t.Errorf("%d texts, want 4 of %q", got, svg.Text)
	}
	show(t, picture)
}

func TestDraw_RefusesWhatHasNoPlace(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]Line{
		"no points":            {Label: "a"},
		"a value is NaN":       line("a", []float64{1}, []float64{math.NaN()}),
		"a value is +Inf":      line("a", []float64{math.Inf(1)}, []float64{1}),
		"1 values at 2 points": line("a", []float64{1, 2}, []float64{1}),
	} {
		if err := Draw(&bytes.Buffer{}, Picture{Format: "svg", Lines: []Line{l}}); err == nil || err.Error() != "a: "+name {
			t.Errorf("%v, want a: %s", err, name)
		}
	}
}

func TestAxis_Ticks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 500, "0 100 200 300 400 500"},
		{-1, 1, "-1.0 -0.5 0 0.5 1.0"},
		{0, 1.22e6, "0 0.2M 0.4M 0.6M 0.8M 1.0M 1.2M"},
		{3e5, 4.1e5, "300k 320k 340k 360k 380k 400k"},
		{0, 0.7, "0 0.1 0.2 0.3 0.4 0.5 0.6 0.7"},
		{0.31, 0.32, "0.310 0.312 0.314 0.316 0.318 0.320"},
		{-1e-6, 3e-6, "-1e-06 0 1e-06 2e-06 3e-06"},
		{12345678, 12345999, "12.34570M 12.34575M 12.34580M 12.34585M 12.34590M 12.34595M"},
		{-5e15, 5e15, "-4e+15 -2e+15 0 2e+15 4e+15"},
		{7, 7, "6.5 7.0 7.5"},
		{math.Inf(1), math.Inf(-1), "-1.0 -0.5 0 0.5 1.0"},
		{0, 0, "-1.0 -0.5 0 0.5 1.0"},
	} {
		a := axis{low: c.low, high: c.high}
		a.widen()
		a.label(func([]tick) bool { return true })
		var labels []string
		for _, tick := range a.ticks {
			labels = append(labels, tick.label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
}

// Any finite axis has from two ticks to eight, in order, each at its place, with a label of its own that says its value.
func TestAxis_TicksOfAnyRange(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	number := func() float64 {
		for {
			if v := math.Float64frombits(random.Uint64()); !math.IsNaN(v) && !math.IsInf(v, 0) {
				return v
			}
		}
	}
	units := map[byte]float64{'k': 1e3, 'M': 1e6, 'G': 1e9}
	for range 20_000 {
		low := number()
		high := number()
		if random.IntN(2) == 0 {
			low = random.NormFloat64() * math.Pow10(random.IntN(20)-5)
			high = low + random.Float64()*math.Pow10(random.IntN(20)-5)
		}
		a := axis{low: min(low, high), high: max(low, high)}
		a.widen()
		a.label(func([]tick) bool { return true })
		if n := len(a.ticks); n < 2 || n > 8 {
			t.Fatalf("from %v to %v: %d ticks", low, high, n)
		}
		for i, tick := range a.ticks {
			text, unit := tick.label, 1.0
			if by, ok := units[text[len(text)-1]]; ok {
				text, unit = text[:len(text)-1], by
			}
			said, err := strconv.ParseFloat(text, 64)
			if off := math.Abs(said*unit/2-tick.value/2) / (a.high/2 - a.low/2); err != nil || off > 1e-3 {
				t.Fatalf("from %v to %v: %q at %v", low, high, tick.label, tick.value)
			}
			if s := a.share(tick.value); s < -1e-3 || s > 1+1e-3 {
				t.Fatalf("from %v to %v: a tick at %v, a share of %v", low, high, tick.value, s)
			}
			if i > 0 && (tick.value <= a.ticks[i-1].value || tick.label == a.ticks[i-1].label) {
				t.Fatalf("from %v to %v: %v after %v", low, high, tick, a.ticks[i-1])
			}
		}
	}
}
