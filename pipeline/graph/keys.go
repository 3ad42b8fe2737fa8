package graph

import (
	"fmt"
	"strings"
)

// Keys returns the values in a pipeline's text by their keys, such as component.learner.epochs or wire[0].signal. Tables have
// no entry; lists of values are one entry.
func Keys(src []byte) (map[string]string, error) {
	var tables map[string]any
	if _, err := decode(bom(string(src)), &tables); err != nil {
		return nil, err
	}
	keys := map[string]string{}
	flatten(keys, "", tables)
	return keys, nil
}

func flatten(keys map[string]string, at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			flatten(keys, strings.TrimPrefix(at+"."+key, "."), member)
		}
	case []map[string]any:
		for i, member := range v {
			flatten(keys, fmt.Sprintf("%s[%d]", at, i), member)
		}
	default:
		keys[at] = fmt.Sprint(v)
	}
}
