package table

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Field is one field of a struct with its key.
type Field struct {
	Key   string
	Bytes bool // an integer that is written as a size, such as "16MiB"
	Omit  bool // a map that is not written where it is empty
	Index []int
}

// Fields returns the tagged fields of a struct in their order, including the fields of embedded structs.
func Fields(t reflect.Type) []Field {
	var list []Field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("toml")
		if f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct {
			for _, sub := range Fields(f.Type) {
				sub.Index = append([]int{i}, sub.Index...)
				list = append(list, sub)
			}
			continue
		}
		key, rest, _ := strings.Cut(tag, ",")
		options := strings.Split(rest, ",")
		if key == "" || key == "-" || !f.IsExported() {
			continue
		}
		list = append(list, Field{Key: key, Bytes: slices.Contains(options, "bytes"), Omit: slices.Contains(options, "omitempty"), Index: []int{i}})
	}
	return list
}

// Keys returns the keys of the struct that into points to.
func Keys(into any) []string {
	var keys []string
	for _, f := range Fields(reflect.TypeOf(into).Elem()) {
		keys = append(keys, f.Key)
	}
	return keys
}

// Decode fills the struct that into points to from a table. Fields that the table does not have keep their values; the
// keys others are skipped. A *map[string]any gets the whole table without the skipped keys. The error joins an *Error
// for each key that is wrong. Decode panics on a field of a type that no table can fill.
func Decode(v Value, into any, others ...string) error {
	if m, ok := into.(*map[string]any); ok {
		*m = Map(v, others...)
		return nil
	}
	p := reflect.ValueOf(into)
	if p.Kind() != reflect.Pointer || p.IsNil() || p.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode into %T: want a pointer to a struct", into)
	}
	var d decoder
	d.fillStruct(v, "", p.Elem(), others)
	return errors.Join(d.errs...)
}

// decoder collects the errors.
type decoder struct {
	errs   []error
	tables []enclosing // tables being decoded, the outermost first
}

// enclosing is a table with the keys that it may have.
type enclosing struct {
	path string
	keys []string
}

func (d *decoder) add(code string, v Value, key, help, format string, args ...any) {
	d.errs = append(d.errs, &Error{Code: code, At: v, Key: key, Reason: fmt.Sprintf(format, args...), Help: help})
}

// wrong notes that a value has the wrong type.
func (d *decoder) wrong(v Value, key, want, help string) {
	d.add(CodeType, v, key, help, "must be %s", want)
}

func (d *decoder) fillStruct(v Value, path string, into reflect.Value, others []string) {
	known := slices.Clone(others)
	byKey := map[string]Field{}
	for _, f := range Fields(into.Type()) {
		byKey[f.Key] = f
		known = append(known, f.Key)
	}
	d.tables = append(d.tables, enclosing{path, known})
	defer func() { d.tables = d.tables[:len(d.tables)-1] }()
	names, _ := v.Keys()
	for _, name := range names {
		f, ok := byKey[name]
		switch {
		case slices.Contains(others, name):
		case !ok:
			d.errs = append(d.errs, &Error{Code: CodeUnknown, At: v.Key(name), Key: path + name, Table: path,
				Reason: "is not a key of this table", Help: cmp.Or(d.elsewhere(name, path), MeantKey(name, known))})
		default:
			d.fill(v.Key(name), path+name, into.FieldByIndex(f.Index), f.Bytes)
		}
	}
}

// elsewhere says where a key belongs that a table around this one has; nothing if there is none.
func (d *decoder) elsewhere(name, path string) string {
	for _, l := range slices.Backward(d.tables) {
		if l.path != path && slices.Contains(l.keys, name) {
			inner, _, _ := strings.Cut(strings.TrimPrefix(path, l.path), ".")
			return fmt.Sprintf("write it next to `%s`, not in it", inner)
		}
	}
	return ""
}

func (d *decoder) fill(v Value, key string, into reflect.Value, bytes bool) {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	if into.Type() == reflect.TypeFor[time.Duration]() {
		d.fillDuration(v, key, into)
		return
	}
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.fillText(v, key, u)
		return
	}
	if w, ok := into.Addr().Interface().(Worded); ok {
		if word, isWord := v.Scalar().(string); isWord {
			w.SetWord(word)
			return
		}
	}
	switch into.Kind() {
	case reflect.Struct, reflect.Map:
		names, ok := v.Keys()
		switch {
		case !ok && reflect.PointerTo(into.Type()).Implements(reflect.TypeFor[Worded]()):
			d.wrong(v, key, "a word or a table", "")
		case !ok:
			d.wrong(v, key, "a table", "")
		case into.Kind() == reflect.Struct:
			d.fillStruct(v, key+".", into, nil)
		default:
			d.fillMap(v, names, key, into)
		}
	case reflect.Slice:
		d.fillSlice(v, key, into)
	case reflect.Interface:
		if value := bare(v); value != nil {
			into.Set(reflect.ValueOf(value))
		}
	default:
		d.fillScalar(v, key, into, bytes)
	}
}

func (d *decoder) fillMap(v Value, names []string, key string, into reflect.Value) {
	into.Set(reflect.MakeMap(into.Type()))
	for _, name := range names {
		item := reflect.New(into.Type().Elem()).Elem()
		d.fill(v.Key(name), key+"."+name, item, false)
		into.SetMapIndex(reflect.ValueOf(name).Convert(into.Type().Key()), item)
	}
}

func (d *decoder) fillSlice(v Value, key string, into reflect.Value) {
	items, ok := v.Items()
	if !ok {
		d.wrong(v, key, "a list", "")
		return
	}
	list := reflect.MakeSlice(into.Type(), len(items), len(items))
	for i, item := range items {
		d.fill(item, fmt.Sprintf("%s[%d]", key, i), list.Index(i), false)
	}
	into.Set(list)
}

func (d *decoder) fillDuration(v Value, key string, into reflect.Value) {
	s, ok := v.Scalar().(string)
	if !ok {
		d.wrong(v, key, `a duration such as "200us", "30s" or "10m"`, "put number and unit in quotes")
		return
	}
	t, err := time.ParseDuration(s)
	switch {
	case err != nil:
		d.wrong(v, key, fmt.Sprintf("a duration, %q is none", s), `write "200us", "30s", "10m" or "1h30m"`)
	case t < 0:
		d.add(CodeRange, v, key, "", "is %s, must be 0 or more", s)
	default:
		into.SetInt(int64(t))
	}
}

func (d *decoder) fillText(v Value, key string, into encoding.TextUnmarshaler) {
	s, ok := v.Scalar().(string)
	if !ok {
		d.wrong(v, key, "a string", "")
		return
	}
	if err := into.UnmarshalText([]byte(s)); err != nil {
		d.errs = append(d.errs, &Error{Code: CodeRange, At: v, Key: key, Reason: err.Error(), Err: err})
	}
}

func (d *decoder) fillScalar(v Value, key string, into reflect.Value, bytes bool) {
	switch into.Kind() {
	case reflect.String:
		if s, ok := v.Scalar().(string); ok {
			into.SetString(s)
			return
		}
		d.wrong(v, key, "a string", quoteHelp(v))
	case reflect.Bool:
		if b, ok := v.Scalar().(bool); ok {
			into.SetBool(b)
			return
		}
		text := textOf(v)
		d.wrong(v, key, "true or false", unquoteHelp(text, text == "true" || text == "false"))
	case reflect.Float32, reflect.Float64:
		d.fillFloat(v, key, into)
	default:
		if !into.CanInt() && !into.CanUint() {
			panic(fmt.Sprintf("table: `%s` is decoded into a %v", key, into.Type()))
		}
		d.fillInteger(v, key, into, bytes)
	}
}

// textOf returns a string, or nothing for other values.
func textOf(v Value) string {
	s, _ := v.Scalar().(string)
	return s
}

// unquoteHelp says how to write a text that is meant as a value, if it is.
func unquoteHelp(text string, meant bool) string {
	if !meant {
		return ""
	}
	return fmt.Sprintf("write %s, without quotes", text)
}

// bareNumber returns a number without the underscores that TOML allows in it.
func bareNumber(number string) string { return strings.ReplaceAll(number, "_", "") }

// startsWithDigit reports whether TOML may read a text as a number: not Infinity, NaN or .5, which only Go reads.
func startsWithDigit(text string) bool {
	text = strings.TrimLeft(text, "+-")
	return text != "" && text[0] >= '0' && text[0] <= '9'
}

// quoteHelp says how to write a bare scalar as a string.
func quoteHelp(v Value) string {
	if text := v.Text(); text != "" {
		return fmt.Sprintf("write \"%s\"", text)
	}
	return ""
}

func (d *decoder) fillFloat(v Value, key string, into reflect.Value) {
	f, ok := v.Scalar().(float64)
	if i, isInt := v.Scalar().(int64); isInt {
		f, ok = float64(i), true
	}
	switch {
	case !ok:
		text := textOf(v)
		_, err := strconv.ParseFloat(bareNumber(text), 64)
		d.wrong(v, key, "a number", unquoteHelp(text, err == nil && startsWithDigit(text)))
	case math.IsNaN(f) || math.IsInf(f, 0) || into.OverflowFloat(f):
		d.add(CodeRange, v, key, "", "is %g, must be a finite number", f)
	default:
		into.SetFloat(f)
	}
}

func (d *decoder) fillInteger(v Value, key string, into reflect.Value, bytes bool) {
	i, ok := v.Scalar().(int64)
	if s, isText := v.Scalar().(string); isText && bytes {
		var err error
		if i, err = ParseBytes(s); err != nil {
			d.wrong(v, key, fmt.Sprintf("a size, %q is none", s), `write "64KiB", "16MiB" or "1GiB"`)
			return
		}
		ok = true
	}
	want, help := "an integer", ""
	if bytes {
		want = `a size such as "64KiB" or "16MiB"`
	} else if f, isFloat := v.Scalar().(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		help = fmt.Sprintf("write %d", int64(f))
	} else if _, err := strconv.ParseInt(bareNumber(textOf(v)), 10, 64); err == nil {
		help = unquoteHelp(textOf(v), true)
	}
	switch {
	case !ok:
		d.wrong(v, key, want, help)
	case into.CanUint() && i < 0:
		d.add(CodeRange, v, key, "", "is %d, must be 0 or more", i)
	case into.CanUint() && into.OverflowUint(uint64(i)) || into.CanInt() && into.OverflowInt(i):
		d.add(CodeRange, v, key, "", "is %d, which does not fit in %d bits", i, into.Type().Bits())
	case into.CanUint():
		into.SetUint(uint64(i))
	default:
		into.SetInt(i)
	}
}
