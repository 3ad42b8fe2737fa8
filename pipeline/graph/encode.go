package graph

import (
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
