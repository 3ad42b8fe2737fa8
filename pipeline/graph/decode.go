package graph

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rlhost/rlhost/core/table"
)

// errDecode is what decode returns to a component when problems were noted. They have their places already.
var errDecode = errors.New("the table has errors, see above")

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

// unknownKey notes a key that a table does not have.
func (c *Report) unknownKey(n *node, name, path string, known []string) {
	c.Add(table.CodeUnknown, n.key, table.DidYouMean(name, "`%s`", "keys", known), "unknown key `%s` in [%s]", name, path)
}

// wrong notes that a value has the wrong type.
func (c *Report) wrong(n *node, path, want, help string) {
	c.Add(table.CodeType, n.val, help, "`%s` must be %s", path, want)
}

// suggest is the help where the candidate is known.
func suggest(candidate string) string { return fmt.Sprintf("did you mean %q?", candidate) }
