package process

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi/native"
)

// decodeJSON decodes a document; numbers whose type is open stay as they are written.
func decodeJSON(doc []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return nil
}

// configErrors returns what is wrong with a table, one entry for each key.
func configErrors(err error) []native.ConfigError {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var list []native.ConfigError
		for _, e := range joined.Unwrap() {
			list = append(list, configErrors(e)...)
		}
		return list
	}
	var c *component.ConfigError
	if errors.As(err, &c) {
		return []native.ConfigError{native.ConfigError(*c)}
	}
	return []native.ConfigError{{Reason: err.Error()}}
}

// Codes of the problems that decoding finds, as in the pipeline's own checks.
const (
	codeUnknown = "E002"
	codeType    = "E003"
	codeRange   = "E005"
)

// decodeTable fills the struct that into points to, strictly: fields are named by their toml tags, and what the table
// does not have keeps its value. A *map[string]any gets the table as it stands. The errors are joined
// *component.ConfigErrors.
func decodeTable(table map[string]any, into any) error {
	if m, ok := into.(*map[string]any); ok {
		*m = plainTable(table)
		return nil
	}
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode into %T: want a pointer to a struct", into)
	}
	var d decoder
	d.fillStruct(table, "", v.Elem())
	return errors.Join(d.errs...)
}

// plainTable returns a copy of a table with numbers as int64 or float64.
func plainTable(table map[string]any) map[string]any {
	plain := make(map[string]any, len(table))
	for key, value := range table {
		plain[key] = plainValue(value)
	}
	return plain
}

func plainValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return plainTable(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plainValue(v[i])
		}
		return list
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64() // what is too large is infinite
		return f
	}
	return value
}

// decoder collects what is wrong.
type decoder struct{ errs []error }

func (d *decoder) add(code, key, help, format string, args ...any) {
	d.errs = append(d.errs, &component.ConfigError{Key: key, Reason: fmt.Sprintf(format, args...), Help: help, Code: code})
}

// wrong notes that a value has the wrong type.
func (d *decoder) wrong(key, want, help string) { d.add(codeType, key, help, "must be %s", want) }

// field is one field of a struct with its key.
type field struct {
	bytes bool // an integer that is written as a size, such as "16MiB"
	index []int
}

// fieldsOf returns the tagged fields of a struct by key, those of embedded structs included.
func fieldsOf(t reflect.Type) map[string]field {
	list := map[string]field{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("toml")
		if f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct {
			for key, sub := range fieldsOf(f.Type) {
				sub.index = append([]int{i}, sub.index...)
				list[key] = sub
			}
			continue
		}
		key, option, _ := strings.Cut(tag, ",")
		if key != "" && key != "-" && f.IsExported() {
			list[key] = field{bytes: option == "bytes", index: []int{i}}
		}
	}
	return list
}

func (d *decoder) fillStruct(table map[string]any, path string, into reflect.Value) {
	fields := fieldsOf(into.Type())
	for _, name := range slices.Sorted(maps.Keys(table)) {
		f, ok := fields[name]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
			d.add(codeUnknown, path+name, "the keys are "+known, "is not a key of this table")
			continue
		}
		d.fill(table[name], path+name, into.FieldByIndex(f.index), f.bytes)
	}
}

func (d *decoder) fill(value any, key string, into reflect.Value, bytes bool) {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	if into.Type() == reflect.TypeFor[time.Duration]() {
		d.fillDuration(value, key, into)
		return
	}
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.fillText(value, key, u)
		return
	}
	switch into.Kind() {
	case reflect.Struct, reflect.Map:
		table, ok := value.(map[string]any)
		switch {
		case !ok:
			d.wrong(key, "a table", "")
		case into.Kind() == reflect.Struct:
			d.fillStruct(table, key+".", into)
		default:
			d.fillMap(table, key, into)
		}
	case reflect.Slice:
		d.fillSlice(value, key, into)
	default:
		d.fillScalar(value, key, into, bytes)
	}
}

func (d *decoder) fillMap(table map[string]any, key string, into reflect.Value) {
	into.Set(reflect.MakeMap(into.Type()))
	for _, name := range slices.Sorted(maps.Keys(table)) {
		v := reflect.New(into.Type().Elem()).Elem()
		d.fill(table[name], key+"."+name, v, false)
		into.SetMapIndex(reflect.ValueOf(name).Convert(into.Type().Key()), v)
	}
}

func (d *decoder) fillSlice(value any, key string, into reflect.Value) {
	list, ok := value.([]any)
	if !ok {
		d.wrong(key, "a list", "")
		return
	}
	made := reflect.MakeSlice(into.Type(), len(list), len(list))
	for i, item := range list {
		d.fill(item, fmt.Sprintf("%s[%d]", key, i), made.Index(i), false)
	}
	into.Set(made)
}

func (d *decoder) fillDuration(value any, key string, into reflect.Value) {
	s, ok := value.(string)
	if !ok {
		d.wrong(key, `a duration such as "200us", "30s" or "10m"`, "put number and unit in quotes")
		return
	}
	t, err := time.ParseDuration(s)
	switch {
	case err != nil:
		d.wrong(key, fmt.Sprintf("a duration, %q is none", s), `write "200us", "30s", "10m" or "1h30m"`)
	case t < 0:
		d.add(codeRange, key, "", "is %s, must be 0 or more", s)
	default:
		into.SetInt(int64(t))
	}
}

func (d *decoder) fillText(value any, key string, into encoding.TextUnmarshaler) {
	s, ok := value.(string)
	if !ok {
		d.wrong(key, "a string", "")
		return
	}
	if err := into.UnmarshalText([]byte(s)); err != nil {
		d.add(codeRange, key, "", "%v", err)
	}
}

func (d *decoder) fillScalar(value any, key string, into reflect.Value, bytes bool) {
	switch into.Kind() {
	case reflect.String:
		if s, ok := value.(string); ok {
			into.SetString(s)
			return
		}
		d.wrong(key, "a string", "")
	case reflect.Bool:
		if b, ok := value.(bool); ok {
			into.SetBool(b)
			return
		}
		d.wrong(key, "true or false", "")
	case reflect.Float32, reflect.Float64:
		d.fillFloat(value, key, into)
	default:
		if !into.CanInt() && !into.CanUint() {
			d.add("", key, "", "is decoded into a %v, which no table has", into.Type())
			return
		}
		d.fillInteger(value, key, into, bytes)
	}
}

func (d *decoder) fillFloat(value any, key string, into reflect.Value) {
	n, ok := value.(json.Number)
	if !ok {
		d.wrong(key, "a number", "")
		return
	}
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) || into.OverflowFloat(f) {
		d.add(codeRange, key, "", "is %s, must be a finite number", n)
		return
	}
	into.SetFloat(f)
}

func (d *decoder) fillInteger(value any, key string, into reflect.Value, bytes bool) {
	want := "an integer"
	if bytes {
		want = `a size such as "64KiB" or "16MiB"`
	}
	i, ok := int64(0), false
	switch v := value.(type) {
	case string:
		if bytes {
			i, ok = parseBytes(v)
		}
	case json.Number:
		var err error
		i, err = v.Int64()
		ok = err == nil
	}
	switch {
	case !ok:
		d.wrong(key, want, "")
	case into.CanUint() && i < 0:
		d.add(codeRange, key, "", "is %d, must be 0 or more", i)
	case into.CanUint() && into.OverflowUint(uint64(i)), into.CanInt() && into.OverflowInt(i):
		d.add(codeRange, key, "", "is %d, which does not fit in %d bits", i, into.Type().Bits())
	case into.CanUint():
		into.SetUint(uint64(i))
	default:
		into.SetInt(i)
	}
}

// parseBytes reads a size such as 16MiB, in powers of 1024.
func parseBytes(s string) (int64, bool) {
	units := []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
	for _, u := range units {
		if digits, ok := strings.CutSuffix(s, u.name); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
			return n * u.bytes, err == nil && n >= 0 && n <= math.MaxInt64/u.bytes
		}
	}
	return 0, false
}
