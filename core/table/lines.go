package table

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Lines writes a table as lines "key=value", sorted by key: nested keys are joined with dots, elements of a list with commas.
func Lines(table map[string]any) string {
	var lines []string
	appendLines(&lines, "", table)
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func appendLines(lines *[]string, prefix string, table map[string]any) {
	for key, value := range table {
		if inner, ok := value.(map[string]any); ok {
			appendLines(lines, prefix+key+".", inner)
			continue
		}
		*lines = append(*lines, prefix+key+"="+lineValue(value)+"\n")
	}
}

func lineValue(value any) string {
	switch v := value.(type) {
	case string:
		return strings.NewReplacer("\n", " ", "\r", " ").Replace(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []any:
		items := make([]string, len(v))
		for i := range v {
			items[i] = lineValue(v[i])
		}
		return strings.Join(items, ",")
	}
	return fmt.Sprint(value)
}
