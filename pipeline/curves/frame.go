package curves

import (
	"image/color"
)

// Sizes in a picture, in points.
const (
	inch        = 72
	titleSize   = 12
	nameSize    = 11
	tickSize    = 10
	legendSize  = 11
	lineSpacing = 1.3
	lineWidth   = 1.5
	gap         = 4
	tickLength  = 4
	inset       = 5 // between the lines and the axes
)

// frame says where a picture has its lines, and the values there.
type frame struct {
	wide, high               float64
	left, top, right, bottom float64
	x, y                     axis
}

// frameOf lays a picture out.
func frameOf(picture *Picture) (*frame, error) {
	f := &frame{wide: picture.Width * inch, high: picture.Height * inch, x: emptyAxis(), y: emptyAxis()}
	if picture.Width == 0 {
		f.wide, f.high = 8*inch, 5*inch
	}
	for i := range picture.Lines {
		line := &picture.Lines[i]
		if err := line.check(); err != nil {
			return nil, err
		}
		f.x.cover(line.Band.X)
		f.y.cover(line.Band.Mean)
		if line.Band.Curves > 1 {
			f.y.cover(line.Band.Low)
			f.y.cover(line.Band.High)
		}
	}
	if picture.From != picture.To {
		f.x.low, f.x.high = picture.From, picture.To
	}
	f.x.widen()
	f.y.widen()

	f.top = gap + tickSize
	if picture.Title != "" {
		f.top += titleSize * lineSpacing
	}
	f.bottom = f.high - inset - tickLength - tickSize*lineSpacing - gap
	if picture.X != "" {
		f.bottom -= nameSize * lineSpacing
	}
	f.y.label(func(ticks []tick) bool { return float64(len(ticks))*tickSize*2 < f.bottom-f.top })
	f.left = inset + tickLength + gap + widestOf(f.y.ticks) + gap
	if picture.Y != "" {
		f.left += nameSize*lineSpacing + gap
	}
	f.x.label(func(ticks []tick) bool { return float64(len(ticks))*(widestOf(ticks)+3*gap) < f.wide-f.left })
	f.right = f.wide - inset - max(gap, widestOf(f.x.ticks)/2)
	return f, nil
}

func (f *frame) atX(v float64) float64 { return f.left + f.x.share(v)*(f.right-f.left) }

func (f *frame) atY(v float64) float64 { return f.bottom - f.y.share(v)*(f.bottom-f.top) }

// drawAxes draws what stands around the lines, and the grid behind them.
func (f *frame) drawAxes(c canvas, picture *Picture) {
	l, t, r, b := f.left-inset, f.top-inset, f.right+inset, f.bottom+inset
	axes := [][]point{{{l, t}, {l, b}, {r, b}}}
	var grid [][]point
	for _, tick := range f.x.ticks {
		x := f.atX(tick.value)
		grid = append(grid, []point{{x, t}, {x, b}})
		axes = append(axes, []point{{x, b}, {x, b + tickLength}})
		c.write(tick.label, point{x, b + tickLength + tickSize}, tickSize, middle, false)
	}
	for _, tick := range f.y.ticks {
		y := f.atY(tick.value)
		grid = append(grid, []point{{l, y}, {r, y}})
		axes = append(axes, []point{{l - tickLength, y}, {l, y}})
		c.write(tick.label, point{l - tickLength - gap, y + tickSize*0.36}, tickSize, right, false)
	}
	c.stroke(grid, color.NRGBA{128, 128, 128, 255}, 0.25)
	c.stroke(axes, color.NRGBA{0, 0, 0, 255}, 0.5)
	c.write(picture.Title, point{f.wide / 2, gap + titleSize}, titleSize, middle, false)
	c.write(picture.X, point{(f.left + f.right) / 2, f.high - gap}, nameSize, middle, false)
	c.write(picture.Y, point{gap + nameSize, (f.top + f.bottom) / 2}, nameSize, middle, true)
}
