package graph

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
)

// errDecode is what decode returns to a component when problems were noted. They have their places already.
var errDecode = errors.New("the table has errors, see above")

// tableDecoder fills structs from one table, strictly.
type tableDecoder struct {
	c     *Report
	n     *node
	path  string              // such as component.rollout
	skip  map[string]struct{} // keys that somebody else reads
	known []string            // the same, for suggestions
	into  any                 // the struct that was filled last
}

// skipping makes the decoder pass keys that are not the struct's.
func (d *tableDecoder) skipping(keys ...string) *tableDecoder {
	d.skip, d.known = map[string]struct{}{}, keys
	for _, k := range keys {
		d.skip[k] = struct{}{}
	}
	return d
}

// decode fills the struct that into points to. Fields are named by their toml tags; what the table does not have
// keeps its value. A *map[string]any gets the table as it stands, for components that are configured elsewhere. It
// is what Component.Configure gets.
func (d *tableDecoder) decode(into any) error {
	if table, ok := into.(*map[string]any); ok {
		*table = plainTable(d.n, d.known...)
		return nil
	}
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("decode into %T: want a pointer to a struct", into)
	}
	since := len(d.c.list)
	d.into = into
	d.c.fillStruct(d.n, d.path, v.Elem(), d.skip, d.known)
	if d.c.failed(since) {
		return errDecode
	}
	return nil
}

// field is one field of a struct with its key.
type field struct {
	key   string
	bytes bool // an integer that is written as a size, such as "16MiB"
	index []int
}

// fields returns the tagged fields of a struct, those of embedded structs included.
func fields(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("toml")
		if f.Anonymous && !tagged && f.Type.Kind() == reflect.Struct {
			for _, sub := range fields(f.Type) {
				sub.index = append([]int{i}, sub.index...)
				list = append(list, sub)
			}
			continue
		}
		key, option, _ := strings.Cut(tag, ",")
		if key == "" || key == "-" || !f.IsExported() {
			continue
		}
		list = append(list, field{key: key, bytes: option == "bytes", index: []int{i}})
	}
	return list
}

func (c *Report) fillStruct(n *node, path string, into reflect.Value, skip map[string]struct{}, known []string) {
	if n == nil {
		return
	}
	list := fields(into.Type())
	byKey := map[string]field{}
	for _, f := range list {
		byKey[f.key] = f
		known = append(known[:len(known):len(known)], f.key)
	}
	for _, name := range n.names {
		if _, ok := skip[name]; ok {
			continue
		}
		child := n.table[name]
		f, ok := byKey[name]
		if !ok {
			c.unknownKey(child, name, path, known)
			continue
		}
		c.fill(child, path+"."+name, into.FieldByIndex(f.index), f.bytes)
	}
}

func (c *Report) unknownKey(n *node, name, path string, known []string) {
	c.Add("E002", n.key, didYouMean(name, "`%s`", "keys", known), "unknown key `%s` in [%s]", name, path)
}

// wrong notes that a value has the wrong type.
func (c *Report) wrong(n *node, path, want, help string) {
	c.Add("E003", n.val, help, "`%s` must be %s", path, want)
}

func (c *Report) fill(n *node, path string, into reflect.Value, bytes bool) {
	if into.Kind() == reflect.Pointer {
		into.Set(reflect.New(into.Type().Elem()))
		into = into.Elem()
	}
	if into.Type() == reflect.TypeFor[time.Duration]() {
		c.fillDuration(n, path, into)
		return
	}
	if u, ok := into.Addr().Interface().(encoding.TextUnmarshaler); ok {
		c.fillText(n, path, u)
		return
	}
	switch into.Kind() {
	case reflect.Struct:
		if n.kind != tableNode {
			c.wrong(n, path, "a table", "")
			return
		}
		c.fillStruct(n, path, into, nil, nil)
	case reflect.Map:
		c.fillMap(n, path, into)
	case reflect.Slice:
		c.fillSlice(n, path, into)
	default:
		c.fillScalar(n, path, into, bytes)
	}
}

func (c *Report) fillMap(n *node, path string, into reflect.Value) {
	if n.kind != tableNode {
		c.wrong(n, path, "a table", "")
		return
	}
	into.Set(reflect.MakeMap(into.Type()))
	for _, name := range n.names {
		v := reflect.New(into.Type().Elem()).Elem()
		c.fill(n.table[name], path+"."+name, v, false)
		into.SetMapIndex(reflect.ValueOf(name).Convert(into.Type().Key()), v)
	}
}

func (c *Report) fillSlice(n *node, path string, into reflect.Value) {
	if n.kind != arrayNode {
		c.wrong(n, path, "a list", "")
		return
	}
	list := reflect.MakeSlice(into.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		c.fill(item, fmt.Sprintf("%s[%d]", path, i), list.Index(i), false)
	}
	into.Set(list)
}

func (c *Report) fillDuration(n *node, path string, into reflect.Value) {
	s, ok := n.text()
	if !ok {
		c.wrong(n, path, `a duration such as "200us", "30s" or "10m"`, "put number and unit in quotes")
		return
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		c.wrong(n, path, fmt.Sprintf("a duration, %q is none", s), `write "200us", "30s", "10m" or "1h30m"`)
		return
	}
	if d < 0 {
		c.Add("E005", n.val, "", "`%s` is %s, must be 0 or more", path, s)
		return
	}
	into.SetInt(int64(d))
}

func (c *Report) fillText(n *node, path string, into encoding.TextUnmarshaler) {
	s, ok := n.text()
	if !ok {
		c.wrong(n, path, "a string", "")
		return
	}
	if err := into.UnmarshalText([]byte(s)); err != nil {
		c.Add("E005", n.val, "", "`%s`: %v", path, err)
	}
}

func (c *Report) fillScalar(n *node, path string, into reflect.Value, bytes bool) {
	switch into.Kind() {
	case reflect.String:
		if s, ok := n.text(); ok {
			into.SetString(s)
			return
		}
		c.wrong(n, path, "a string", quoteHelp(n))
	case reflect.Bool:
		if b, ok := n.value.(bool); ok && n.kind == scalarNode {
			into.SetBool(b)
			return
		}
		c.wrong(n, path, "true or false", "")
	case reflect.Float32, reflect.Float64:
		c.fillFloat(n, path, into)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		c.fillInteger(n, path, into, bytes)
	default:
		panic(fmt.Sprintf("pipeline: `%s` is decoded into a %v", path, into.Type()))
	}
}

// quoteHelp says how to make a string of a bare number.
func quoteHelp(n *node) string {
	if n.kind != scalarNode || n.val.src == nil {
		return ""
	}
	return fmt.Sprintf("write \"%s\"", n.val.src.text[n.val.off:n.val.end])
}

func (c *Report) fillFloat(n *node, path string, into reflect.Value) {
	f, ok := n.value.(float64)
	if i, isInt := n.value.(int64); isInt {
		f, ok = float64(i), true
	}
	switch {
	case !ok || n.kind != scalarNode:
		c.wrong(n, path, "a number", "")
	case math.IsNaN(f) || math.IsInf(f, 0) || into.OverflowFloat(f):
		c.Add("E005", n.val, "", "`%s` is %g, must be a finite number", path, f)
	default:
		into.SetFloat(f)
	}
}

func (c *Report) fillInteger(n *node, path string, into reflect.Value, bytes bool) {
	i, ok := n.value.(int64)
	if s, isText := n.text(); isText && bytes {
		var err error
		if i, err = ParseBytes(s); err != nil {
			c.wrong(n, path, fmt.Sprintf("a size, %q is none", s), `write "64KiB", "16MiB" or "1GiB"`)
			return
		}
		ok = true
	}
	want, help := "an integer", ""
	if bytes {
		want = `a size such as "64KiB" or "16MiB"`
	} else if f, isFloat := n.value.(float64); isFloat && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		help = fmt.Sprintf("write %d", int64(f))
	}
	switch {
	case !ok || n.kind != scalarNode:
		c.wrong(n, path, want, help)
	case into.CanUint() && i < 0:
		c.Add("E005", n.val, "", "`%s` is %d, must be 0 or more", path, i)
	case into.CanUint() && into.OverflowUint(uint64(i)) || into.CanInt() && into.OverflowInt(i):
		c.Add("E005", n.val, "", "`%s` is %d, which does not fit in %d bits", path, i, into.Type().Bits())
	case into.CanUint():
		into.SetUint(uint64(i))
	default:
		into.SetInt(i)
	}
}

// plainTable returns a table as maps, lists, strings, int64, float64, bool and time.Time.
func plainTable(n *node, skip ...string) map[string]any {
	table := map[string]any{}
	if n == nil {
		return table
	}
	for _, name := range n.names {
		if !slices.Contains(skip, name) {
			table[name] = plainValue(n.table[name])
		}
	}
	return table
}

func plainValue(n *node) any {
	switch n.kind {
	case tableNode:
		return plainTable(n)
	case arrayNode:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = plainValue(item)
		}
		return list
	}
	return n.value
}
