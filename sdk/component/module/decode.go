package module

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/sdk/component"
)

// decoder returns what Configure gets for a table of lines "key=value".
func decoder(lines string) func(into any) error {
	values := map[string]string{}
	for line := range strings.Lines(lines) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		values[key] = value
	}
	return func(into any) error { return decode(values, into) }
}

// decode fills the struct, or the *map[string]any, that into points to.
func decode(values map[string]string, into any) error {
	if m, ok := into.(*map[string]any); ok {
		*m = map[string]any{}
		for key, value := range values {
			(*m)[key] = value
		}
		return nil
	}
	p := reflect.ValueOf(into)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode into %T: want a pointer to a struct", into)
	}
	d := lineDecoder{values: values, known: map[string]bool{}}
	d.fill("", p.Elem())
	for _, key := range sorted(values) {
		if !d.known[key] {
			d.bad(key, "is not known")
		}
	}
	return errors.Join(d.errs...)
}

func sorted(values map[string]string) (keys []string) {
	for key := range values {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// lineDecoder collects the errors.
type lineDecoder struct {
	values map[string]string
	known  map[string]bool
	errs   []error
}

func (d *lineDecoder) bad(key, reason string) {
	d.errs = append(d.errs, &component.ConfigError{Key: key, Reason: reason})
}

// fill sets the tagged fields of a struct, whose keys begin with prefix.
func (d *lineDecoder) fill(prefix string, to reflect.Value) {
	for i := range to.NumField() {
		f := to.Type().Field(i)
		key, option, _ := strings.Cut(f.Tag.Get("toml"), ",")
		if f.Anonymous && key == "" && f.Type.Kind() == reflect.Struct {
			d.fill(prefix, to.Field(i))
			continue
		}
		if key == "" || key == "-" || !f.IsExported() {
			continue
		}
		key = prefix + key
		if f.Type.Kind() == reflect.Struct {
			d.fill(key+".", to.Field(i))
			continue
		}
		value, ok := d.values[key]
		if !ok {
			continue
		}
		d.known[key] = true
		if want := set(to.Field(i), value, option == "bytes"); want != "" {
			d.bad(key, "must be "+want)
		}
	}
}

// set parses a value into a field; it returns what it must be, or "".
func set(to reflect.Value, value string, size bool) (want string) {
	var err error
	switch {
	case to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return set(to.Elem(), value, size)
	case to.Type() == reflect.TypeFor[time.Duration]():
		var d time.Duration
		d, err = time.ParseDuration(value)
		to.SetInt(int64(d))
		want = "a duration"
	case to.Kind() == reflect.String:
		to.SetString(value)
	case to.Kind() == reflect.Bool:
		to.SetBool(value == "true")
		if value != "true" && value != "false" {
			return "true or false"
		}
	case size && (to.CanInt() || to.CanUint()):
		return setSize(to, value)
	case to.CanInt():
		var n int64
		n, err = strconv.ParseInt(value, 10, to.Type().Bits())
		to.SetInt(n)
		want = "an integer"
	case to.CanUint():
		var n uint64
		n, err = strconv.ParseUint(value, 10, to.Type().Bits())
		to.SetUint(n)
		want = "an integer, 0 or more"
	case to.CanFloat():
		var x float64
		x, err = strconv.ParseFloat(value, to.Type().Bits())
		to.SetFloat(x)
		want = "a number"
	case to.Kind() == reflect.Slice:
		return setList(to, value)
	default:
		panic("a table cannot fill a field of type " + to.Type().String())
	}
	if err != nil {
		return want
	}
	return ""
}

func setList(to reflect.Value, value string) (want string) {
	to.SetZero()
	if value == "" {
		return ""
	}
	for part := range strings.SplitSeq(value, ",") {
		item := reflect.New(to.Type().Elem()).Elem()
		if want := set(item, part, false); want != "" {
			return "a list, each " + want
		}
		to.Set(reflect.Append(to, item))
	}
	return ""
}

// setSize parses a size such as 16MiB.
func setSize(to reflect.Value, value string) (want string) {
	number, shift := value, 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if rest, ok := strings.CutSuffix(value, unit); ok {
			number, shift = rest, 10*(i+1)
		}
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(number, "B"), 10, 64)
	if err != nil || n < 0 || n > 1<<(62-shift) {
		return "a size, such as 16MiB"
	}
	if to.CanUint() {
		to.SetUint(uint64(n) << shift)
	} else {
		to.SetInt(n << shift)
	}
	return ""
}

// configWords are the lines of rl_configure that name keys.
func configWords(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, one := range joined.Unwrap() {
			lines = append(lines, configWords(one))
		}
		return strings.Join(lines, "\n")
	}
	var e *component.ConfigError
	if !errors.As(err, &e) {
		return err.Error()
	}
	words := e.Key + ": " + e.Reason
	if e.Help != "" {
		words += "\n  " + e.Help
	}
	return words
}
