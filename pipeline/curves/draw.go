package curves

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgimg" // png
	_ "gonum.org/v1/plot/vg/vgsvg" // svg
)

// Picture is the content of a plot.
type Picture struct {
	Format string // one of Formats
	Title  string
	X, Y   string // names of the axes
	Lines  []Line
}

// Line is one band with its name in the legend.
type Line struct {
	Label string
	Band  Band
}

// Formats are the formats of pictures.
func Formats() []string { return []string{"svg", "png"} }

// Size of a picture.
const (
	width  = 8 * vg.Inch
	height = 5 * vg.Inch
)

// Draw writes a picture: a line for each band's mean, its interval as an area of the same colour.
func Draw(w io.Writer, picture Picture) error {
	if !slices.Contains(Formats(), picture.Format) {
		return fmt.Errorf("pictures cannot be %q, only svg and png", picture.Format)
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = picture.Title, picture.X, picture.Y
	p.Add(plotter.NewGrid())
	p.Legend.Top, p.Legend.Left = true, true
	for i, line := range picture.Lines {
		if err := add(p, line, plotutil.Color(i)); err != nil {
			return fmt.Errorf("%s: %w", line.Label, err)
		}
	}
	widen(&p.X)
	widen(&p.Y)
	out, err := p.WriterTo(width, height, picture.Format)
	if err != nil {
		return err
	}
	_, err = out.WriteTo(w)
	return err
}

// widen gives an axis a range that ticks fit in: plot's own margin of 1 around equal values is lost in large ones.
func widen(a *plot.Axis) {
	large := max(math.Abs(a.Min), math.Abs(a.Max))
	if math.IsInf(large, 0) || large == 0 {
		return // no points, or all of them 0
	}
	if margin := max(large*leastRange, leastMargin); a.Max-a.Min < margin {
		a.Min, a.Max = a.Min-margin, a.Max+margin
	}
}

// The least range of an axis: by its largest value, and next to 0.
const (
	leastRange  = 1e-9
	leastMargin = 1e-100
)

func add(p *plot.Plot, line Line, c color.Color) error {
	b := &line.Band
	mean, err := plotter.NewLine(points(b.X, b.Mean))
	if err != nil {
		return err
	}
	mean.Color, mean.Width = c, vg.Points(1.5)
	if b.Curves > 1 {
		back := points(b.X, b.High)
		slices.Reverse(back)
		area, err := plotter.NewPolygon(append(points(b.X, b.Low), back...))
		if err != nil {
			return err
		}
		r, g, blue, _ := c.RGBA()
		area.Color = color.NRGBA{uint8(r >> 8), uint8(g >> 8), uint8(blue >> 8), 60}
		area.LineStyle.Width = 0
		p.Add(area)
	}
	p.Add(mean)
	p.Legend.Add(line.Label, mean)
	return nil
}

func points(x, y []float64) plotter.XYs {
	all := make(plotter.XYs, len(x))
	for i := range x {
		all[i] = plotter.XY{X: x[i], Y: y[i]}
	}
	return all
}
