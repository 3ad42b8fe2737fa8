package table

import (
	"encoding"
	"reflect"
	"strings"
	"time"
)

// Description describes a key of a table for readers. A field has its meaning in the tag doc, and may have range, unit, type and default:
//
//	Epochs int `toml:"epochs" doc:"Passes over a dataset." range:"1 to 1000"`
type Description struct {
	Key     string // with dots where it is in a table of the table; a word in capitals stands for any name
	Type    string
	Default string // as TOML; empty where there is none
	Range   string
	Unit    string
	Meaning string
}

// Describe describes the keys that Decode takes into the struct that into points to, whose values are the defaults. A field whose doc is
// "-" is left out: an error about such a key says what to write instead. Keys of tables come one by one.
func Describe(into any) []Description {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil
	}
	return describe(nil, "", v.Elem(), true)
}

// describe appends the keys of a struct; the defaults of a table that is absent by default are no defaults.
func describe(list []Description, path string, v reflect.Value, present bool) []Description {
	for _, f := range Fields(v.Type()) {
		tag := v.Type().FieldByIndex(f.Index).Tag
		if tag.Get("doc") == "-" {
			continue
		}
		value, here := v.FieldByIndex(f.Index), present
		if value.Kind() == reflect.Pointer {
			if here = here && !value.IsNil(); value.IsNil() {
				value = reflect.New(value.Type().Elem())
			}
			value = value.Elem()
		}
		if isTable(value) && len(Fields(value.Type())) > 0 {
			if reflect.PointerTo(value.Type()).Implements(reflect.TypeFor[Worded]()) {
				list = append(list, Description{Key: path + f.Key, Type: "text or table", Default: tag.Get("default"), Range: tag.Get("range"), Meaning: tag.Get("doc")})
				here = false // the word is the default
			}
			list = describe(list, path+f.Key+".", value, here)
			continue
		}
		d := Description{Key: path + f.Key, Type: tag.Get("type"), Range: tag.Get("range"), Unit: tag.Get("unit"), Meaning: tag.Get("doc")}
		if d.Type == "" {
			d.Type = typeName(value.Type(), f.Bytes)
		}
		if text, ok := tag.Lookup("default"); ok {
			d.Default = text
		} else if here && !isTable(value) && !(value.IsZero() && (value.Kind() == reflect.String || value.Kind() == reflect.Interface)) {
			d.Default = encodeValue(value, f.Bytes)
		}
		inner := value.Type()
		if kind := inner.Kind(); kind != reflect.Map && kind != reflect.Slice || !isTable(reflect.New(inner.Elem()).Elem()) {
			list = append(list, d)
			continue
		}
		place := ".NAME."
		if name := tag.Get("name"); name != "" {
			place = "." + name + "."
		}
		if inner.Kind() == reflect.Slice {
			place = "[]."
			list = append(list, d)
		}
		list = describe(list, path+f.Key+place, reflect.New(inner.Elem()).Elem(), false)
	}
	return list
}

// isTable reports whether a value is written as a table with keys of its own.
func isTable(v reflect.Value) bool {
	if v.Kind() != reflect.Struct {
		return false
	}
	_, text := v.Addr().Interface().(encoding.TextUnmarshaler)
	return !text
}

// typeName names the values that Decode takes for a type.
func typeName(t reflect.Type, bytes bool) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return "text"
	case bytes:
		return "size"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "text"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Interface:
		return "any"
	case reflect.Struct:
		return "empty table"
	case reflect.Slice:
		if elem(t).Kind() == reflect.Struct {
			return "list of tables"
		}
		return "list of " + plural(typeName(elem(t), false))
	case reflect.Map:
		if t.Elem().Kind() == reflect.Interface {
			return "table"
		}
		return "table of " + plural(typeName(elem(t), false))
	}
	return "integer"
}

// elem is the type of the elements, without a pointer.
func elem(t reflect.Type) reflect.Type {
	if t = t.Elem(); t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

func plural(name string) string { return strings.TrimSuffix(name, "s") + "s" }
