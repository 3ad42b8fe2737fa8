package curves

import (
	"math"
	"strings"

	"github.com/rlhost/rlhost/pipeline/seeds"
)

// Band is the mean of several curves at the points X, with the 95 % interval of that mean over the curves. Of one
// curve, all three are equal.
type Band struct {
	X, Mean, Low, High []float64
	Curves             int
}

// bandResamples is enough for a line's width.
const bandResamples = 1000

// Over returns the band of curves at n points, evenly spaced over the part of the axis that all of them cover. Without such
// a part it has no points.
func Over(all []Curve, n int) Band {
	return over(all, n, func(s *seeds.Summary) seeds.Estimate { return s.Mean })
}

// IQMOver is Over with the interquartile mean of the curves, and its interval, in the place of their mean.
func IQMOver(all []Curve, n int) Band {
	return over(all, n, func(s *seeds.Summary) seeds.Estimate { return s.IQM })
}

func over(all []Curve, n int, of func(*seeds.Summary) seeds.Estimate) Band {
	b := Band{Curves: len(all)}
	first, last := math.Inf(-1), math.Inf(1)
	for i := range all {
		if len(all[i].X) == 0 {
			return b
		}
		first, last = max(first, all[i].X[0]), min(last, all[i].X[len(all[i].X)-1])
	}
	if len(all) == 0 || first > last {
		return b
	}
	if first == last {
		n = 1
	}
	values := make([]float64, len(all))
	for k := range n {
		x := first
		if k > 0 {
			x += (last - first) * float64(k) / float64(n-1)
		}
		for i := range all {
			values[i] = all[i].At(x)
		}
		summary := seeds.Summarize([][]float64{values}, seeds.Options{Resamples: bandResamples})
		mean := of(&summary)
		b.X, b.Mean = append(b.X, x), append(b.Mean, mean.Value)
		b.Low, b.High = append(b.Low, mean.Low), append(b.High, mean.High)
	}
	return b
}

// Sparkline draws values as a line of text of at most width characters, the highest of the values that fall together.
// Values that are not finite are spaces.
func Sparkline(values []float64, width int) string {
	const bars = "▁▂▃▄▅▆▇█"
	levels := []rune(bars)
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	var line strings.Builder
	columns := min(width, len(values))
	for k := range columns {
		top := math.Inf(-1)
		for _, v := range values[k*len(values)/columns : (k+1)*len(values)/columns] {
			if v <= high {
				top = max(top, v)
			}
		}
		switch {
		case top < low:
			line.WriteRune(' ')
		case high == low:
			line.WriteRune(levels[0])
		default:
			line.WriteRune(levels[int((top/2-low/2)/(high/2-low/2)*float64(len(levels)-1)+0.5)])
		}
	}
	return line.String()
}
