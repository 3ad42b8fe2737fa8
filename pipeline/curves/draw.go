package curves

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"
)

// Picture is the content of a plot.
type Picture struct {
	Format string // one of Formats
	Title  string
	X, Y   string // names of the axes
	Lines  []Line
	Marks  []Mark

	Width, Height float64 // in inches; 0 are 8 and 5
	From, To      float64 // part of the axis that is shown; equal ones show all
	Clear         bool    // without a background, for a page that has its own
}

// Mark is something that happened at a place of the axis: a line across the picture, dashed, dotted or solid by its kind from 0 on.
type Mark struct {
	X    float64
	Kind int
}

// Layout says where a picture shows what: the corners of the part with the lines, as shares of its width and height from the top left, and the
// values at its ends.
type Layout struct {
	Left, Top, Right, Bottom float64
	MinX, MaxX, MinY, MaxY   float64
}

// Line is one band with its name in the legend.
type Line struct {
	Label string
	Band  Band
}

// point is a place in a picture, in points of 1/72 inch from the top left.
type point struct{ x, y float64 }

// canvas is what a picture is drawn on.
type canvas interface {
	fill(shape []point, c color.NRGBA)
	stroke(lines [][]point, c color.NRGBA, width float64)
	// write places text with its left end, its middle or its right end at a point of its base line. Turned text runs upwards.
	write(text string, at point, size float64, end align, turned bool)
	// within shows of what draw draws the part in a box.
	within(topLeft, bottomRight point, draw func())
	writeTo(w io.Writer) error
}

// align is the end of a text that is placed.
type align int

const (
	left align = iota
	middle
	right
)

// Formats are the formats of pictures.
func Formats() []string { return []string{"svg", "png"} }

// Draw writes a picture: a line for each band's mean, its interval as an area of the same colour. A line without points is an error.
func Draw(w io.Writer, picture Picture) error {
	f, err := frameOf(&picture)
	if err != nil {
		return err
	}
	var c canvas
	switch picture.Format {
	case "svg":
		c = newSVG(f.wide, f.high)
	case "png":
		c = newBitmap(f.wide, f.high)
	default:
		return fmt.Errorf("pictures cannot be %q, only svg and png", picture.Format)
	}
	if !picture.Clear {
		c.fill([]point{{0, 0}, {f.wide, 0}, {f.wide, f.high}, {0, f.high}}, color.NRGBA{255, 255, 255, 255})
	}
	f.drawAxes(c, &picture)
	c.within(point{f.left - inset, f.top - inset}, point{f.right + inset, f.bottom + inset}, func() {
		for i := range picture.Lines {
			f.drawBand(c, &picture.Lines[i].Band, colourOf(i))
		}
		f.drawMarks(c, picture.Marks)
	})
	f.drawLegend(c, picture.Lines)
	return c.writeTo(w)
}

// LayoutOf returns where Draw shows what.
func LayoutOf(picture Picture) (Layout, error) {
	f, err := frameOf(&picture)
	if err != nil {
		return Layout{}, err
	}
	return Layout{
		Left: f.left / f.wide, Right: f.right / f.wide, Top: f.top / f.high, Bottom: f.bottom / f.high,
		MinX: f.x.low, MaxX: f.x.high, MinY: f.y.low, MaxY: f.y.high,
	}, nil
}

// colourOf returns colours of lines of which each has a contrast of 4.5 with white, and turned round with black.
func colourOf(i int) color.NRGBA {
	colours := []color.NRGBA{
		{24, 90, 169, 255}, {200, 30, 30, 255}, {0, 115, 60, 255}, {150, 80, 0, 255},
		{102, 44, 145, 255}, {0, 105, 115, 255}, {162, 29, 130, 255}, {80, 80, 80, 255},
	}
	return colours[i%len(colours)]
}

func (f *frame) drawBand(c canvas, b *Band, colour color.NRGBA) {
	if b.Curves > 1 {
		back := f.places(b.X, b.High)
		slices.Reverse(back)
		area := colour
		area.A = 60
		c.fill(append(f.places(b.X, b.Low), back...), area)
	}
	c.stroke([][]point{f.places(b.X, b.Mean)}, colour, lineWidth)
}

func (f *frame) places(x, y []float64) []point {
	all := make([]point, len(x))
	for i := range x {
		all[i] = point{f.atX(x[i]), f.atY(y[i])}
	}
	return all
}

// drawMarks draws the marks that the shown part of the axis has.
func (f *frame) drawMarks(c canvas, marks []Mark) {
	high := f.bottom - f.top
	kinds := []struct{ dash, gap float64 }{{6, 3}, {1.5, 3}, {high, high}}
	for _, m := range marks {
		if m.X < f.x.low || m.X > f.x.high {
			continue
		}
		kind := kinds[m.Kind%len(kinds)]
		x := f.atX(m.X)
		var dashes [][]point
		for y := f.bottom; y > f.top; y -= kind.dash + kind.gap {
			dashes = append(dashes, []point{{x, y}, {x, max(y-kind.dash, f.top)}})
		}
		c.stroke(dashes, color.NRGBA{110, 110, 110, 255}, 1)
	}
}

// drawLegend names the lines, from the top left down.
func (f *frame) drawLegend(c canvas, lines []Line) {
	const sample = 20
	y := f.top + legendSize
	for i := range lines {
		if lines[i].Label == "" {
			continue
		}
		x, middle := f.left+gap, y-legendSize/3
		c.stroke([][]point{{{x, middle}, {x + sample, middle}}}, colourOf(i), lineWidth)
		c.write(lines[i].Label, point{x + sample + gap, y}, legendSize, left, false)
		y += legendSize * lineSpacing
	}
}

// check refuses what has no place in a picture.
func (l *Line) check() error {
	if len(l.Band.X) == 0 {
		return fmt.Errorf("%s: no points", l.Label)
	}
	for _, values := range [][]float64{l.Band.X, l.Band.Mean, l.Band.Low, l.Band.High} {
		if len(values) != len(l.Band.X) {
			return fmt.Errorf("%s: %d values at %d points", l.Label, len(values), len(l.Band.X))
		}
		for _, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("%s: a value is %v", l.Label, v)
			}
		}
	}
	return nil
}
