package graph

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/table"
)

// keyValue is one line of an expanded table.
type keyValue = table.Line

// How texts are written.
var quote, quoteKey, quoteList, encodeStruct = table.Quote, table.QuoteKey, table.QuoteList, table.EncodeStruct

// encodeNode returns a node as TOML.
func encodeNode(n *node) string {
	switch n.kind {
	case tableNode:
		return table.Inline(encodeTable(n))
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
	return table.EncodeValue(n.value)
}

func encodeTable(n *node, skip ...string) []keyValue {
	var list []keyValue
	for _, name := range n.names {
		if !slices.Contains(skip, name) {
			list = append(list, keyValue{Key: name, Value: encodeNode(n.table[name])})
		}
	}
	return list
}

// lineChanges lists the keys that differ: "learning_rate 0.0015 → 0.0003".
func lineChanges(a, b []keyValue) []string {
	was := map[string]string{}
	for _, kv := range a {
		was[kv.Key] = kv.Value
	}
	var list []string
	for _, kv := range b {
		old, ok := was[kv.Key]
		delete(was, kv.Key)
		switch {
		case !ok:
			list = append(list, kv.Key+" = "+kv.Value)
		case old != kv.Value:
			list = append(list, kv.Key+" "+old+" → "+kv.Value)
		}
	}
	for _, kv := range a {
		if _, gone := was[kv.Key]; gone {
			list = append(list, kv.Key+" "+kv.Value+" removed")
		}
	}
	return list
}

// configLines returns the keys of a component or policy with the defaults that it filled in.
func configLines(config any, table *node, skip ...string) []keyValue {
	if config == nil {
		return encodeTable(table, skip...)
	}
	return encodeStruct(reflect.ValueOf(config).Elem())
}
