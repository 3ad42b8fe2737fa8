package graph

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/table"
)

// keyValue is one line of an expanded table.
type keyValue struct{ key, value string }

// encodeStruct returns the tagged fields of a struct as TOML, in their order. Nil pointers are left out.
func encodeStruct(v reflect.Value) []keyValue {
	var list []keyValue
	for _, f := range table.Fields(v.Type()) {
		value := v.FieldByIndex(f.Index)
		if value.Kind() == reflect.Pointer {
			if value.IsNil() {
				continue
			}
			value = value.Elem()
		}
		list = append(list, keyValue{f.Key, encodeValue(value, f.Bytes)})
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
			return quote(string(text))
		}
	}
	switch v.Kind() {
	case reflect.String:
		return quote(v.String())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float32, reflect.Float64:
		return formatFloat(v.Float(), v.Type().Bits())
	case reflect.Struct:
		return inline(encodeStruct(v))
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
		return strconv.Quote(table.FormatBytes(v.Int()))
	}
	if bytes && v.CanUint() {
		return strconv.Quote(table.FormatBytes(int64(v.Uint())))
	}
	return fmt.Sprint(v.Interface())
}

func encodeMap(v reflect.Value) string {
	var list []keyValue
	for _, k := range v.MapKeys() {
		list = append(list, keyValue{k.String(), encodeValue(v.MapIndex(k), false)})
	}
	slices.SortFunc(list, func(a, b keyValue) int { return strings.Compare(a.key, b.key) })
	return inline(list)
}

// encodeNode returns a node as TOML.
func encodeNode(n *node) string {
	switch n.kind {
	case tableNode:
		return inline(encodeTable(n))
	case arrayNode:
		items := make([]string, len(n.items))
		for i, item := range n.items {
			items[i] = encodeNode(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	if t, ok := n.value.(time.Time); ok {
		return t.Format(time.RFC3339Nano)
	}
	return encodeValue(reflect.ValueOf(n.value), false)
}

func encodeTable(n *node, skip ...string) []keyValue {
	var list []keyValue
	for _, name := range n.names {
		if !slices.Contains(skip, name) {
			list = append(list, keyValue{name, encodeNode(n.table[name])})
		}
	}
	return list
}

func inline(list []keyValue) string {
	if len(list) == 0 {
		return "{}"
	}
	items := make([]string, len(list))
	for i, kv := range list {
		items[i] = quoteKey(kv.key) + " = " + kv.value
	}
	return "{ " + strings.Join(items, ", ") + " }"
}

func quoteKey(key string) string {
	if key != "" && strings.IndexFunc(key, func(r rune) bool { return r >= 0x80 || !isBare(byte(r)) }) < 0 {
		return key
	}
	return quote(key)
}

// quote returns a TOML basic string.
func quote(s string) string {
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

func quoteList(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = quote(s)
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
