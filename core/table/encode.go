package table

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Line is one line of a table in TOML: a key and its value as text.
type Line struct{ Key, Value string }

// EncodeValue returns a value as TOML.
func EncodeValue(v any) string { return encodeValue(reflect.ValueOf(v), false) }

// unquoted are the characters of keys that need no quotes.
const unquoted = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// EncodeStruct returns the tagged fields of a struct as TOML, in their order. Nil pointers are left out, and so are empty maps and zero values that are to be omitted.
func EncodeStruct(v reflect.Value) []Line {
	var list []Line
	for _, f := range Fields(v.Type()) {
		value := v.FieldByIndex(f.Index)
		if f.Omit && (value.IsZero() || value.Kind() == reflect.Map && value.Len() == 0) {
			continue
		}
		if value.Kind() == reflect.Pointer {
			if value.IsNil() {
				continue
			}
			value = value.Elem()
		}
		list = append(list, Line{f.Key, encodeValue(value, f.Bytes)})
	}
	return list
}

func encodeValue(v reflect.Value, bytes bool) string {
	if d, ok := v.Interface().(time.Duration); ok {
		return strconv.Quote(formatDuration(d))
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		text, err := m.MarshalText()
		if err == nil {
			return Quote(string(text))
		}
	}
	if w, ok := v.Interface().(worder); ok {
		if word, ok := w.Word(); ok {
			return Quote(word)
		}
	}
	switch v.Kind() {
	case reflect.String:
		return Quote(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float32, reflect.Float64:
		return formatFloat(v.Float(), v.Type().Bits())
	case reflect.Struct:
		return Inline(EncodeStruct(v))
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = encodeValue(v.Index(i), false)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case reflect.Map:
		return encodeMap(v)
	case reflect.Interface:
		return encodeValue(v.Elem(), false)
	}
	if bytes && v.CanInt() {
		return strconv.Quote(FormatBytes(v.Int()))
	}
	if bytes && v.CanUint() {
		return strconv.Quote(FormatBytes(int64(v.Uint())))
	}
	return fmt.Sprint(v.Interface())
}

func encodeMap(v reflect.Value) string {
	var list []Line
	for _, k := range v.MapKeys() {
		list = append(list, Line{k.String(), encodeValue(v.MapIndex(k), false)})
	}
	slices.SortFunc(list, func(a, b Line) int { return strings.Compare(a.Key, b.Key) })
	return Inline(list)
}

// Inline returns lines as an inline table.
func Inline(list []Line) string {
	if len(list) == 0 {
		return "{}"
	}
	items := make([]string, len(list))
	for i, kv := range list {
		items[i] = QuoteKey(kv.Key) + " = " + kv.Value
	}
	return "{ " + strings.Join(items, ", ") + " }"
}

// QuoteKey returns a key as TOML has it: quoted only where it must be.
func QuoteKey(key string) string {
	if key != "" && strings.Trim(key, unquoted) == "" {
		return key
	}
	return Quote(key)
}

// Quote returns a TOML basic string.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

// QuoteList returns a TOML list of strings.
func QuoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// formatFloat writes the shortest number that reads back the same, with a point so that it stays a float.
func formatFloat(f float64, bits int) string {
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(s, ".einf") {
		s += ".0"
	}
	return s
}

// formatDuration leaves out the zeros of time.Duration.String and its Greek letter.
func formatDuration(d time.Duration) string {
	s := strings.Replace(d.String(), "µs", "us", 1)
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return s
}
