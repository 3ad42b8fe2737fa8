package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Point has a value for each key of a space: a float64, an int64, a bool, a string, or a list of such values.
type Point map[string]any

// fault says what is wrong with a dimension, and the remedy; nothing if it is right.
func (d *Dim) fault() (reason, help string) {
	if d.Choices != nil {
		return d.choiceFault()
	}
	if d.From == nil || d.To == nil {
		return "has neither both bounds nor choices", "write { from = 1e-5, to = 1e-2 } or { choices = [1, 2] }"
	}
	from, to := *d.From, *d.To
	switch {
	case d.Scale != "" && d.Scale != linear && d.Scale != logarithmic && d.Scale != oneMinus:
		return fmt.Sprintf("has the scale %q", d.Scale), "scales: linear, log, one_minus"
	case !(from < to):
		return fmt.Sprintf("is from %g to %g", from, to), "`from` must be below `to`"
	case math.IsInf(to-from, 0):
		return fmt.Sprintf("is from %g to %g, which is too wide", from, to), "take closer bounds"
	case d.Scale == logarithmic && from <= 0:
		return fmt.Sprintf("begins at %g, and a logarithm needs more than 0", from), "raise `from`, or take scale = \"linear\""
	case d.Scale == oneMinus && to >= 1:
		return fmt.Sprintf("ends at %g, and the scale one_minus needs less than 1", to), "lower `to`, or take scale = \"linear\""
	case d.Integer && (from != math.Trunc(from) || to != math.Trunc(to) || math.Abs(from) > 1<<53 || math.Abs(to) > 1<<53):
		return fmt.Sprintf("takes whole numbers, and is from %g to %g", from, to), "give whole bounds"
	case d.Integer && d.Scale == oneMinus:
		return "takes whole numbers on the scale one_minus", "take linear or log"
	case d.Grid < 0 || d.Grid == 1 || d.Grid > maxTrials:
		return fmt.Sprintf("has a grid of %d", d.Grid), fmt.Sprintf("take 2 to %d values", maxTrials)
	}
	return "", ""
}

func (d *Dim) choiceFault() (reason, help string) {
	switch {
	case d.From != nil || d.To != nil || d.Scale != "" || d.Integer || d.Grid != 0:
		return "has choices and bounds", "leave either out"
	case len(d.Choices) < 2:
		return fmt.Sprintf("has %d to choose from", len(d.Choices)), "give two choices at least, or set the key outside of [sweep]"
	case len(d.Choices) > maxTrials:
		return fmt.Sprintf("has %d choices", len(d.Choices)), fmt.Sprintf("take %d at most", maxTrials)
	}
	var seen []string
	for _, c := range d.Choices {
		text, err := Literal(c)
		if err != nil {
			return fmt.Sprintf("has a choice that cannot be written as a value: %v", err), "choices are numbers, text, true, false and lists of these"
		}
		if slices.Contains(seen, text) {
			return fmt.Sprintf("has the choice %s twice", text), "take one out"
		}
		seen = append(seen, text)
	}
	return "", ""
}

// points is the number of values of the key in a grid; 0 without one.
func (d *Dim) points() int {
	if d.Choices != nil {
		return len(d.Choices)
	}
	return d.Grid
}

// ofGrid returns a value of the grid.
func (d *Dim) ofGrid(i int) any {
	if d.Choices != nil {
		return d.Choices[i]
	}
	return d.number(d.at(float64(i) / float64(d.Grid-1)))
}

// value returns the value for a number of [0, 1).
func (d *Dim) value(u float64) any {
	if d.Choices != nil {
		return d.Choices[min(int(u*float64(len(d.Choices))), len(d.Choices)-1)]
	}
	if d.Integer {
		wide := *d // each whole number has the same part of the scale, as if it were cut off
		to := *d.To + 1
		wide.To = &to
		return int64(min(max(math.Floor(wide.at(u)), *d.From), *d.To))
	}
	return d.number(d.at(u))
}

// at returns the place on the scale.
func (d *Dim) at(u float64) float64 {
	from, to := *d.From, *d.To
	x := from + u*(to-from)
	switch d.Scale {
	case logarithmic:
		x = math.Exp(math.Log(from) + u*(math.Log(to)-math.Log(from)))
	case oneMinus:
		x = 1 - math.Exp(math.Log1p(-from)+u*(math.Log1p(-to)-math.Log1p(-from)))
	}
	return min(max(x, from), to)
}

// number is a value of the key near x, with the digits that matter.
func (d *Dim) number(x float64) any {
	if d.Integer {
		return int64(math.Round(x))
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 12, 64), 64)
	if err != nil {
		return x
	}
	return min(max(rounded, *d.From), *d.To)
}

// ends returns values at the ends of a dimension, or all of its choices.
func (d *Dim) ends() []any {
	if d.Choices != nil {
		return d.Choices
	}
	return []any{d.number(*d.From), d.number(*d.To)}
}

// Corners returns points in which every key has each of its choices or both of its bounds at least once.
func (c *Config) Corners() []Point {
	most := 0
	for _, d := range c.Space {
		most = max(most, len(d.ends()))
	}
	points := make([]Point, most)
	for i := range points {
		points[i] = Point{}
		for key, d := range c.Space {
			ends := d.ends()
			points[i][key] = ends[min(i, len(ends)-1)]
		}
	}
	return points
}

// Check says why a point is none of the space.
func (c *Config) Check(p Point) error {
	for _, key := range c.Keys() {
		v, ok := p[key]
		if !ok {
			return fmt.Errorf("it has no value for %s", key)
		}
		d := c.Space[key]
		if err := d.contains(v); err != nil {
			return fmt.Errorf("%s %w", key, err)
		}
	}
	for key := range p {
		if _, ok := c.Space[key]; !ok {
			return fmt.Errorf("%s is no key of the space", key)
		}
	}
	return nil
}

// contains says why a value is none of the dimension.
func (d *Dim) contains(v any) error {
	text, err := Literal(v)
	if err != nil {
		return err
	}
	if d.Choices != nil {
		for _, c := range d.Choices {
			if own, _ := Literal(c); own == text {
				return nil
			}
		}
		return fmt.Errorf("is %s, which is none of its choices", text)
	}
	x, ok := v.(float64)
	if i, whole := v.(int64); whole {
		x, ok = float64(i), true
	} else if ok && d.Integer {
		return fmt.Errorf("is %s, and takes whole numbers", text)
	}
	if !ok || !(x >= *d.From && x <= *d.To) {
		return fmt.Errorf("is %s, and goes from %g to %g", text, *d.From, *d.To)
	}
	return nil
}

// Literal writes a value as it stands in JSON and in TOML alike. Numbers keep their kind: a float64 always has a point or an exponent.
func Literal(v any) (string, error) {
	switch v := v.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return "", fmt.Errorf("%g is no finite number", v)
		}
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text, nil
	case int64, bool:
		return fmt.Sprint(v), nil
	case string:
		b, err := json.Marshal(v)
		return strings.ReplaceAll(string(b), "\x7f", `\u007f`), err
	case []any:
		parts := make([]string, len(v))
		for i, item := range v {
			var err error
			if parts[i], err = Literal(item); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	}
	return "", fmt.Errorf("a value of the kind %T", v)
}

// Sets returns the point as overrides of a pipeline's keys, sorted.
func (p Point) Sets() []string {
	var sets []string
	for _, key := range sorted(p) {
		text, err := Literal(p[key])
		if err != nil {
			panic(err) // points are made of values that can be written
		}
		sets = append(sets, key+"="+text)
	}
	return sets
}

// MarshalJSON writes the keys sorted and the values as Literal does.
func (p Point) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range sorted(p) {
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		text, err := Literal(p[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.WriteString(text)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON writes: 1 is an int64, 1.0 a float64.
func (p *Point) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return err
	}
	*p = Point{}
	for key, v := range m {
		var err error
		if (*p)[key], err = plain(v); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

// plain turns a value of JSON into one of a point.
func plain(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return i, nil
		}
		return v.Float64()
	case string, bool:
		return v, nil
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = plain(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("a value of the kind %T", v)
}

// UnmarshalJSON reads a dimension, whose choices are values as in a point.
func (d *Dim) UnmarshalJSON(b []byte) error {
	type bare Dim
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	if err := decoder.Decode((*bare)(d)); err != nil || d.Choices == nil {
		return err
	}
	list, err := plain(d.Choices)
	if err == nil {
		d.Choices = list.([]any)
	}
	return err
}

// MarshalJSON writes choices as Literal does, so that 1.0 stays a number with a point.
func (d Dim) MarshalJSON() ([]byte, error) {
	type bare Dim
	b := struct {
		bare
		Choices json.RawMessage `json:"choices,omitempty"`
	}{bare: bare(d)}
	if d.Choices != nil {
		text, err := Literal(d.Choices)
		if err != nil {
			return nil, err
		}
		b.Choices = json.RawMessage(text)
	}
	return json.Marshal(b)
}

func sorted(p Point) []string {
	keys := make([]string, 0, len(p))
	for key := range p {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
