package curves

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"

	"github.com/rlhost/rlhost/core/files"
)

// Bounds on what the log of somebody else can hold of this process.
const (
	maxNames    = 4096      // of metrics; further ones are not listed
	maxKept     = 1 << 17   // lines; every second one is forgotten when there are as many
	maxAtOnce   = 512 << 20 // bytes of one Read
	rememberEnd = 64        // bytes before the end of what was read, by which a replaced file is known
)

// Log is the log of metrics of one run, read as it grows: each Read takes the lines that are new. It keeps the numbers of the metrics that are
// wanted alone. A line costs a microsecond, a file of 100,000 lines a quarter of a second. Its methods are for one goroutine at a time.
type Log struct {
	path   string
	wanted func(name string) bool

	at         int64  // bytes read: whole lines
	end        []byte // that at is behind
	steps      []float64
	seconds    []float64
	kept       map[string]*numbers
	names      map[string]*numbers // nil for a metric that is not kept
	order      []field             // of the newest line: the next one has the same, but for a few
	unreadable int
}

// numbers are the values of a metric, and the lines that have them, by their places in Log.steps.
type numbers struct {
	lines  []int32
	values []float64
}

type field struct {
	name string
	of   *numbers
}

// NewLog returns the log in a run's folder, of which nothing has been read yet. wanted says which metrics are kept.
func NewLog(dir string, wanted func(name string) bool) *Log {
	l := &Log{path: filepath.Join(dir, MetricsFile), wanted: wanted}
	l.reset()
	return l
}

func (l *Log) reset() {
	l.at, l.end, l.steps, l.seconds, l.order, l.unreadable = 0, nil, nil, nil, nil, 0
	l.kept, l.names = map[string]*numbers{}, map[string]*numbers{}
}

// Want keeps other metrics from now on: what was read is read again.
func (l *Log) Want(wanted func(name string) bool) {
	l.wanted = wanted
	l.reset()
}

// Read takes the lines that have come since the last call, 512 MiB at most, and reports whether there were any. A log that was cut or
// replaced, as after a resume, is read from its begin. Lines that are no JSON objects of numbers are counted and left out. A run without a log has
// no lines.
func (l *Log) Read() (grown bool, err error) {
	f, err := files.Open(l.path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if !l.continues(f) {
		l.reset()
	}
	before := l.at
	err = l.readFrom(bufio.NewReaderSize(io.NewSectionReader(f, l.at, maxAtOnce), maxLine))
	return l.at != before, err
}

// continues reports whether a file has what was read of it.
func (l *Log) continues(f *os.File) bool {
	now := make([]byte, len(l.end))
	_, err := f.ReadAt(now, l.at-int64(len(now)))
	return len(now) == 0 || err == nil && bytes.Equal(now, l.end)
}

func (l *Log) readFrom(in *bufio.Reader) error {
	long := false // the line is longer than any of a run's
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = true
			l.at += int64(len(line))
			continue
		case errors.Is(err, io.EOF):
			return nil // the rest of a line comes with a later call
		case err != nil:
			return err
		}
		l.at += int64(len(line))
		l.end = append(l.end[:0], line[max(len(line)-rememberEnd, 0):]...)
		if !long && len(line) > 1 {
			l.add(line[:len(line)-1])
		} else if long {
			l.unreadable++
		}
		long = false
	}
}

// add takes one line.
func (l *Log) add(line []byte) {
	i, x, seconds := int32(len(l.steps)), math.NaN(), math.NaN()
	take := func(at int, name []byte, text []byte) {
		n := l.find(at, name)
		v, err := strconv.ParseFloat(string(text), 64)
		if err != nil || math.Abs(v) > mostDrawn || math.IsNaN(v) {
			return // null, or a number that no picture has room for
		}
		switch string(name) {
		case string(EnvSteps):
			x = v
		case string(Seconds):
			seconds = v
		}
		if n != nil {
			n.lines, n.values = append(n.lines, i), append(n.values, v)
		}
	}
	if !eachField(line, l.needs, take) {
		l.forget(i)
		if x, seconds = math.NaN(), math.NaN(); !slowFields(line, take) {
			l.forget(i)
			l.unreadable++
			return
		}
	}
	if math.IsNaN(x) {
		l.forget(i)
		return
	}
	if l.steps, l.seconds = append(l.steps, x), append(l.seconds, seconds); len(l.steps) >= maxKept {
		l.halve()
	}
}

// find returns where the values of the metric with that name go, which is the at-th of its line.
func (l *Log) find(at int, name []byte) *numbers {
	if at < len(l.order) && l.order[at].name == string(name) {
		return l.order[at].of
	}
	n, known := l.names[string(name)]
	if !known && len(l.names) < maxNames {
		if l.wanted(string(name)) {
			n = &numbers{}
			l.kept[string(name)] = n
		}
		l.names[string(name)] = n
	}
	l.order = append(l.order[:min(at, len(l.order))], field{string(name), n})
	return n
}

// needs reports whether the value of the field is of use.
func (l *Log) needs(at int, name []byte) bool {
	return l.find(at, name) != nil || string(name) == string(EnvSteps) || string(name) == string(Seconds)
}

// forget takes the values of a line back that is left out.
func (l *Log) forget(line int32) {
	for _, n := range l.kept {
		for k := len(n.lines); k > 0 && n.lines[k-1] == line; k-- {
			n.lines, n.values = n.lines[:k-1], n.values[:k-1]
		}
	}
}

// halve forgets every second line.
func (l *Log) halve() {
	for i := range len(l.steps) / 2 {
		l.steps[i], l.seconds[i] = l.steps[2*i+1], l.seconds[2*i+1]
	}
	l.steps, l.seconds = l.steps[:len(l.steps)/2], l.seconds[:len(l.seconds)/2]
	for _, n := range l.kept {
		k := 0
		for i, line := range n.lines {
			if line%2 == 1 {
				n.lines[k], n.values[k] = line/2, n.values[i]
				k++
			}
		}
		n.lines, n.values = n.lines[:k], n.values[:k]
	}
}

// eachField calls take for each field of a flat JSON object as rlhost writes it whose value is needed. It is false for any other text.
func eachField(line []byte, needs func(at int, name []byte) bool, take func(at int, name, value []byte)) bool {
	if len(line) < 2 || line[0] != '{' || line[len(line)-1] != '}' {
		return false
	}
	rest := line[1:]
	for at := 0; len(rest) > 1; at++ {
		if rest[0] != '"' {
			return false
		}
		end := bytes.IndexByte(rest[1:], '"')
		if end < 0 || len(rest) < end+4 || rest[end+2] != ':' {
			return false
		}
		name, value := rest[1:end+1], rest[end+3:]
		stop := bytes.IndexByte(value, ',')
		if stop < 0 {
			stop = len(value) - 1
		}
		if bytes.IndexByte(name, '\\') >= 0 || !looksLikeNumber(value[:stop]) {
			return false
		}
		if needs(at, name) {
			take(at, name, value[:stop])
		}
		rest = value[stop+1:]
	}
	return true
}

// looksLikeNumber tells a number, or null, from other values by its ends.
func looksLikeNumber(text []byte) bool {
	if len(text) == 0 {
		return false
	}
	first, last := text[0], text[len(text)-1]
	return (first == '-' || first >= '0' && first <= '9') && last >= '0' && last <= '9' || string(text) == "null"
}

// slowFields is eachField for all JSON objects of numbers.
func slowFields(line []byte, take func(at int, name, value []byte)) bool {
	var all map[string]*float64
	if json.Unmarshal(line, &all) != nil {
		return false
	}
	for at, name := range slices.Sorted(maps.Keys(all)) {
		if v := all[name]; v != nil {
			take(at, []byte(name), strconv.AppendFloat(nil, *v, 'g', -1, 64))
		}
	}
	return true
}

// Names returns the metrics that any line has, sorted, wanted or not; 4,096 at most.
func (l *Log) Names() []string { return slices.Sorted(maps.Keys(l.names)) }

// Lines is how many lines are kept.
func (l *Log) Lines() int { return len(l.steps) }

// Unreadable is how many lines could not be read.
func (l *Log) Unreadable() int { return l.unreadable }

// Curve returns a metric that is wanted over an axis, as Read does: where the axis goes back, the abandoned points are dropped. It has no points
// where no line has the metric.
func (l *Log) Curve(metric string, x Axis) (c Curve) {
	n := l.kept[metric]
	if n == nil {
		return c
	}
	axis := l.steps
	if x == Seconds {
		axis = l.seconds
	}
	c.X, c.Y = make([]float64, 0, len(n.lines)), make([]float64, 0, len(n.lines))
	for k, line := range n.lines {
		at := axis[line]
		switch last := len(c.X) - 1; {
		case math.IsNaN(at):
		case last < 0 || at > c.X[last]:
			c.X, c.Y = append(c.X, at), append(c.Y, n.values[k])
		default:
			c.add(at, n.values[k])
		}
	}
	return c
}

// Last returns the newest value of a metric that is wanted; false if no line has one.
func (l *Log) Last(metric string) (v float64, ok bool) {
	if n := l.kept[metric]; n != nil && len(n.values) > 0 {
		return n.values[len(n.values)-1], true
	}
	return 0, false
}

// Along returns a curve of one metric over another one, a point for each value of the second: the newest line with it counts. It is for
// metrics that stay as they are until the next one comes, such as the figures of evaluations.
func (l *Log) Along(metric, over string) (c Curve) {
	y, x := l.kept[metric], l.kept[over]
	if y == nil || x == nil {
		return c
	}
	k := 0
	for i, line := range x.lines {
		for k < len(y.lines) && y.lines[k] < line {
			k++
		}
		if k < len(y.lines) && y.lines[k] == line {
			c.add(x.values[i], y.values[k])
		}
	}
	return c
}

// Part returns a curve from one place on its axis to another, as far as it reaches.
func (c *Curve) Part(from, to float64) (part Curve) {
	if len(c.X) == 0 || to < c.X[0] || from > c.X[len(c.X)-1] {
		return part
	}
	from, to = max(from, c.X[0]), min(to, c.X[len(c.X)-1])
	part.add(from, c.At(from))
	for i := sort.SearchFloat64s(c.X, from); i < len(c.X) && c.X[i] < to; i++ {
		part.add(c.X[i], c.Y[i])
	}
	part.add(to, c.At(to))
	return part
}
