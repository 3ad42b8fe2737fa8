package graph

import (
	"fmt"
	"strings"
)

// Assign returns a pipeline file with other values of keys, given as for --set. The rest of the file stays as it is. The error is of type
// Problems, or says which key has no place in the file: a value within a list that the file does not have, for instance.
func Assign(file string, src []byte, sets []string) ([]byte, error) {
	text := bom(string(src))
	for _, set := range sets {
		c := newChecker(file, ParseOptions{})
		assignments := (&setReader{c}).readSets([]string{set})
		root := c.read(newSource(file, text, 0))
		if root == nil || len(assignments) == 0 {
			return nil, c.Sorted()
		}
		_, value, _ := strings.Cut(set, "=")
		value = strings.TrimSpace(value)
		if s, ok := assignments[0].value.text(); ok {
			value = quote(s) // a bare word is text
		}
		var err error
		if text, err = assigned(text, root, assignments[0].path, value); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return []byte(text), nil
}

// assigned gives one key of a text another value.
func assigned(text string, root *node, path []string, value string) (string, error) {
	n, depth := root, 0
	for depth < len(path) {
		next := n.at(path[depth])
		if place, ok := placeOf(path[depth]); ok && n.kind == arrayNode && place < len(n.items) {
			next = n.items[place]
		}
		if next == nil {
			break
		}
		n, depth = next, depth+1
	}
	rest := path[depth:]
	if strings.Contains(strings.Join(rest, ""), "[") {
		return "", fmt.Errorf("%s has no place in it", pathText(path))
	}
	line := dotted(rest) + " = " + value
	switch {
	case len(rest) == 0 && n.kind == tableNode && !n.inline:
		return "", fmt.Errorf("%s is a table in it", pathText(path))
	case len(rest) == 0:
		return text[:n.val.off] + value + text[n.val.end:], nil
	case n.kind != tableNode:
		return "", fmt.Errorf("%s is not a table in it", pathText(path[:depth]))
	case n.inline:
		at := n.val.end - 1
		head := strings.TrimRight(text[:at], " \t")
		if len(n.names) > 0 {
			head += ","
		}
		return head + " " + line + " " + text[at:], nil
	}
	if n != root {
		if with, ok := withLine(text, n, line); ok {
			return with, nil
		}
	}
	return strings.TrimRight(text, "\n") + "\n\n[" + dotted(path[:len(path)-1]) + "]\n" + dotted(path[len(path)-1:]) + " = " + value + "\n", nil
}

// dotted writes parts of a key.
func dotted(path []string) string {
	quoted := make([]string, len(path))
	for i, part := range path {
		quoted[i] = quoteKey(part)
	}
	return strings.Join(quoted, ".")
}
