package curves

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
)

// Axis is the horizontal axis of a curve: the name of a metric that only grows.
type Axis string

// Axes.
const (
	EnvSteps Axis = "global_step"
	Seconds  Axis = "perf/wall_seconds"
)

// MetricsFile is the file of a run's folder that curves are read from: one JSON object of numbers a line.
const MetricsFile = "metrics.jsonl"

// maxLine is how many bytes a line may have: a line with all metrics has some thousands.
const maxLine = 1 << 20

// ErrNoMetric is wrapped by Read where no line has the metric.
var ErrNoMetric = errors.New("no such metric")

// closest is how many metrics an error of a name proposes.
const closest = 3

// Curve is a metric of one run over an axis. X ascends.
type Curve struct{ X, Y []float64 }

// mostDrawn bounds the numbers of curves, so that sums and differences of them are finite.
const mostDrawn = 1e300

// Read reads a curve from a run's folder. Lines that cannot be read, such as the last one of a killed process, and lines with numbers beyond
// ±1e300 are left out and counted. null is no point of the curve. Where the axis goes back, as after a resume from an older checkpoint, the
// abandoned points are dropped.
func Read(dir, metric string, x Axis) (c Curve, unreadable int, err error) {
	f, err := files.Open(filepath.Join(dir, MetricsFile))
	if err != nil {
		return c, 0, err
	}
	c, unreadable, err = read(f, metric, x)
	return c, unreadable, errors.Join(err, f.Close())
}

func read(r io.Reader, metric string, x Axis) (c Curve, unreadable int, err error) {
	names := map[string]bool{}
	c, unreadable, err = scan(r, metric, x, names)
	if err == nil && len(c.X) == 0 {
		err = noMetric(metric, x, slices.Sorted(maps.Keys(names)))
	}
	return c, unreadable, err
}

// scan reads a curve, and notes the names of the metrics of all lines that have no point of it.
func scan(r io.Reader, metric string, x Axis, names map[string]bool) (c Curve, unreadable int, err error) {
	in := bufio.NewReaderSize(r, maxLine)
	for {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return c, unreadable, fmt.Errorf("a line of more than %d bytes: not a log of metrics", maxLine)
		}
		if len(text) > 1 {
			var line map[string]*float64
			if json.Unmarshal(text, &line) != nil {
				unreadable++
			} else if at, y := line[string(x)], line[metric]; at != nil && y != nil {
				if math.Abs(*at) > mostDrawn || math.Abs(*y) > mostDrawn {
					unreadable++
					continue
				}
				c.add(*at, *y)
			} else {
				note(names, line)
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c, unreadable, err
		}
	}
	return c, unreadable, nil
}

func (c *Curve) add(x, y float64) {
	n := sort.SearchFloat64s(c.X, x)
	c.X, c.Y = append(c.X[:n], x), append(c.Y[:n], y)
}

func note(names map[string]bool, line map[string]*float64) {
	for name, v := range line {
		if v != nil {
			names[name] = true
		}
	}
}

// noMetric is the error of a metric that no line has.
func noMetric(metric string, x Axis, names []string) error {
	switch {
	case len(names) == 0:
		return fmt.Errorf("%w: %s over %s: there are none yet", ErrNoMetric, metric, x)
	case slices.Contains(names, metric):
		return fmt.Errorf("%w: no line has both %s and %s", ErrNoMetric, metric, x)
	}
	return fmt.Errorf("%w: %s\n  help: the closest are %s; --metric list prints all", ErrNoMetric, metric, strings.Join(table.Closest(metric, names, closest), ", "))
}

// Metrics returns the names of the metrics in a run's folder, sorted.
func Metrics(dir string) ([]string, error) {
	f, err := files.Open(filepath.Join(dir, MetricsFile))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	_, _, err = scan(f, "", EnvSteps, names)
	return slices.Sorted(maps.Keys(names)), errors.Join(err, f.Close())
}

// At returns the curve's value at x, linear between two points, and the nearest end's outside.
func (c *Curve) At(x float64) float64 {
	i := sort.SearchFloat64s(c.X, x)
	switch {
	case i == len(c.X):
		return c.Y[i-1]
	case i == 0 || c.X[i] == x:
		return c.Y[i]
	}
	part := (x - c.X[i-1]) / (c.X[i] - c.X[i-1])
	return c.Y[i-1] + part*(c.Y[i]-c.Y[i-1])
}
