package graph

import (
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/table"
)

// tableDecoder fills structs from one table, strictly.
type tableDecoder struct {
	c    *Report
	n    *node
	path string   // such as component.rollout
	skip []string // keys that others read
	into any      // the struct filled last
}

// skipping makes the decoder skip keys that are not the struct's.
func (d *tableDecoder) skipping(keys ...string) *tableDecoder {
	d.skip = keys
	return d
}

// decode fills what into points to; see table.Decode. It is what Component.Configure gets.
func (d *tableDecoder) decode(into any) error {
	err := table.Decode(d.n, into, d.skip...)
	if _, plain := into.(*map[string]any); plain {
		return nil
	}
	d.into = into
	for _, e := range table.All(err) {
		if e.At == nil {
			return err // into is no struct
		}
		d.c.addDecoded(d.path, e)
	}
	if err != nil {
		return errDecode
	}
	return nil
}

// decoder returns the function that Configure gets when the pipeline is built: the table has been checked.
func decoder(table *node, path string, skip ...string) func(into any) error {
	return func(into any) error {
		var c Report
		d := (&tableDecoder{c: &c, n: table, path: path}).skipping(skip...)
		if err := d.decode(into); err != nil {
			return fmt.Errorf("%w: %w", err, c.Sorted())
		}
		return nil
	}
}

// addDecoded notes what is wrong with a key of the table at path.
func (c *Report) addDecoded(path string, e *table.Error) {
	n := e.At.(*node)
	switch {
	case e.Code == table.CodeUnknown:
		name := e.Key[len(e.Table):]
		if e.Table != "" {
			path += "." + strings.TrimSuffix(e.Table, ".")
		}
		c.Add(e.Code, n.key, e.Help, "unknown key `%s` in [%s]", name, path)
	case e.Err != nil:
		c.Add(e.Code, n.val, e.Help, "`%s.%s`: %v", path, e.Key, e.Err)
	default:
		c.Add(e.Code, n.val, e.Help, "`%s.%s` %s", path, e.Key, e.Reason)
	}
}

// Decode decodes the component's own keys: what component.Component.Configure is given.
func (x *Component) Decode(into any) error {
	return decoder(x.table, "component."+x.Name, x.ownKeys()...)(into)
}
