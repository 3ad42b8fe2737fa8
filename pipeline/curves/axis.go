package curves

import (
	"math"
	"slices"
	"strconv"
)

// axis is the values at the ends of a side of a picture, and its ticks.
type axis struct {
	low, high float64
	ticks     []tick
}

type tick struct {
	value float64
	label string
}

func emptyAxis() axis { return axis{low: math.Inf(1), high: math.Inf(-1)} }

// cover makes room for values.
func (a *axis) cover(values []float64) {
	a.low, a.high = min(a.low, slices.Min(values)), max(a.high, slices.Max(values))
}

// share returns the place of a value, as a share of the axis; far outside, no farther than nine of its lengths. Halves keep the range of very large
// values finite.
func (a *axis) share(v float64) float64 {
	return min(max((v/2-a.low/2)/(a.high/2-a.low/2), -9), 10)
}

// widen gives an axis a range that ticks fit in.
func (a *axis) widen() {
	if a.low > a.high {
		a.low, a.high = 0, 0 // nothing is shown
	}
	switch large := max(math.Abs(a.low), math.Abs(a.high)); {
	case large < leastValue:
		a.low, a.high = -1, 1
	case a.high/2-a.low/2 < large*leastRange:
		a.low, a.high = max(a.low-large/10, -math.MaxFloat64), min(a.high+large/10, math.MaxFloat64)
	}
}

// The least range of an axis, by its largest value, and what is shown as 0.
const (
	leastRange = 1e-9
	leastValue = 1e-100
)

// label gives an axis the most ticks of at most eight for which there is room.
func (a *axis) label(room func([]tick) bool) {
	for intervals := 7; intervals > 0; intervals-- {
		if a.ticks = a.ticksOf(float64(intervals)); room(a.ticks) {
			return
		}
	}
}

// ticksOf returns ticks at multiples of 1, 2 or 5 times a power of ten, with at most that many intervals.
func (a *axis) ticksOf(intervals float64) (ticks []tick) {
	least := (a.high/2 - a.low/2) / (intervals / 2)
	power, factor := int(math.Floor(math.Log10(least))), 1.0
	for _, factor = range []float64{1, 2, 5, 10} {
		if scaled(factor, power) >= least {
			break
		}
	}
	if factor == 10 {
		power, factor = power+1, 1
	}
	const edge = 1e-6 // of an interval: a tick at the end of an axis is one of its ticks, however the quotient was rounded
	step := scaled(factor, power)
	text := a.labels(power)
	for k := math.Ceil(a.low/step - edge); k <= a.high/step+edge; k++ {
		v := scaled(k*factor, power)
		ticks = append(ticks, tick{v, text(v)})
	}
	return ticks
}

// scaled returns n times a power of ten, rounded once: 3 and -1 are 0.3.
func scaled(n float64, power int) float64 {
	if power < 0 {
		return n / math.Pow10(-power)
	}
	return n * math.Pow10(power)
}

// labels returns what writes the values of an axis whose ticks are multiples of a power of ten: large ones as 1.25M.
func (a *axis) labels(power int) func(v float64) string {
	large := max(math.Abs(a.low), math.Abs(a.high))
	format, digits, unit, of := byte('f'), -power, "", 0
	switch {
	case large >= 1e12 || large < 1e-3:
		format, digits = 'e', int(math.Floor(math.Log10(large)))-power
	case large >= 1e9:
		unit, of = "G", 9
	case large >= 1e6:
		unit, of = "M", 6
	case large >= 1e4:
		unit, of = "k", 3
	}
	return func(v float64) string {
		if v == 0 {
			return "0"
		}
		return strconv.FormatFloat(v/math.Pow10(of), format, max(digits+of, 0), 64) + unit
	}
}

// widestOf returns the width of the widest label.
func widestOf(ticks []tick) (wide float64) {
	for _, t := range ticks {
		wide = max(wide, widthOf(t.label, tickSize))
	}
	return wide
}
