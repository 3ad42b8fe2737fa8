package graph

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/table"
)

// tableDecoder fills structs from one table, strictly.
type tableDecoder struct {
	report *Report
	n      *node
	path   string   // such as component.rollout
	skip   []string // keys that others read
	into   any      // the struct filled last
	faults faults   // that decode has found
}

// skipping makes the decoder skip keys that are not the struct's.
func (d *tableDecoder) skipping(keys ...string) *tableDecoder {
	d.skip = keys
	return d
}

// decode fills the struct that into points to; see table.Decode. Component.Configure gets it.
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
		d.report.addDecoded(d.path, e)
		d.faults.add(e)
	}
	if err != nil {
		return errDecode
	}
	return nil
}

// note is decode for checks: what is wrong has been noted, keeps its default, and keeps nobody from checking the other keys.
func (d *tableDecoder) note(into any) error {
	if err := d.decode(into); err != nil && !errors.Is(err, errDecode) {
		return err
	}
	return nil
}

// decoder returns the function that Configure gets when the pipeline is built: the table has been checked.
func decoder(table *node, path string, skip ...string) func(into any) error {
	return func(into any) error {
		var r Report
		d := (&tableDecoder{report: &r, n: table, path: path}).skipping(skip...)
		if err := d.decode(into); err != nil {
			return fmt.Errorf("%w: %w", err, r.Sorted())
		}
		return nil
	}
}

// addDecoded notes an error in a key of the table at path.
func (r *Report) addDecoded(path string, e *table.Error) {
	n := e.At.(*node)
	if n.variable && e.Code == table.CodeType {
		e.Help = "a variable of the environment is text; for another value write --set " + path + "." + e.Key + "=VALUE"
	}
	switch {
	case e.Code == table.CodeUnknown:
		name := e.Key[len(e.Table):]
		if e.Table != "" {
			path += "." + strings.TrimSuffix(e.Table, ".")
		}
		r.Add(e.Code, n.key, e.Help, "unknown key `%s` in [%s]", name, path)
	case e.Err != nil:
		r.Add(e.Code, n.val, e.Help, "`%s.%s`: %v", path, e.Key, e.Err)
	default:
		r.Add(e.Code, n.val, e.Help, "`%s.%s` %s", path, e.Key, e.Reason)
	}
}

// Decode decodes the component's own keys. component.Component.Configure gets it.
func (x *Component) Decode(into any) error {
	return decoder(x.table, "component."+x.Name, x.ownKeys()...)(into)
}
