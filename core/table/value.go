package table

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Value is a value in its reader's representation: a table, a list, or a scalar.
type Value interface {
	// Keys returns the keys of a table, in the order to report them in; ok is false for others.
	Keys() (keys []string, ok bool)
	// Key returns the value of one of the Keys.
	Key(name string) Value
	// Items returns the values of a list; ok is false for others.
	Items() (items []Value, ok bool)
	// Scalar returns a string, bool, int64, float64 or a value of a type that no field takes; nil for others.
	Scalar() any
	// Text returns a scalar as it is written, or "".
	Text() string
}

// Plain returns a value of maps, lists and scalars, such as encoding/json makes them; numbers may be json.Number.
func Plain(v any) Value { return plain{v} }

type plain struct{ v any }

func (p plain) Keys() ([]string, bool) {
	m, ok := p.v.(map[string]any)
	return slices.Sorted(maps.Keys(m)), ok
}

func (p plain) Key(name string) Value { return plain{p.v.(map[string]any)[name]} }

func (p plain) Items() ([]Value, bool) {
	list, ok := p.v.([]any)
	items := make([]Value, len(list))
	for i := range list {
		items[i] = plain{list[i]}
	}
	return items, ok
}

func (p plain) Scalar() any {
	switch v := p.v.(type) {
	case map[string]any, []any:
		return nil
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		f, _ := v.Float64() // a number too large is infinite
		return f
	}
	return p.v
}

func (p plain) Text() string {
	if s := p.Scalar(); s != nil {
		return fmt.Sprint(p.v)
	}
	return ""
}

// Map returns a table as maps, lists and scalars, without the keys to skip.
func Map(v Value, skip ...string) map[string]any {
	keys, _ := v.Keys()
	m := make(map[string]any, len(keys))
	for _, key := range keys {
		if !slices.Contains(skip, key) {
			m[key] = bare(v.Key(key))
		}
	}
	return m
}

// JSON returns a value as JSON. Infinite numbers and NaN are an error.
func JSON(v Value) ([]byte, error) { return json.Marshal(bare(v)) }

// bare returns a value as maps, lists and scalars.
func bare(v Value) any {
	if _, ok := v.Keys(); ok {
		return Map(v)
	}
	items, ok := v.Items()
	if !ok {
		return v.Scalar()
	}
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = bare(item)
	}
	return list
}
