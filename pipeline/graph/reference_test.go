package graph

import (
	"slices"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/table"
)

// A key of a file that is not described is on no page.
func TestDescribe_HasEverySection(t *testing.T) {
	parts := &Parts{CheckPolicy: func(decode func(into any) error) error { return decode(&struct{}{}) }}
	for _, name := range sectionNames() {
		described := slices.ContainsFunc(parts.Describe(), func(d TableDescription) bool {
			if d.Header == "" {
				return slices.ContainsFunc(d.Keys, func(k table.Description) bool { return k.Key == name })
			}
			return strings.HasPrefix(strings.Trim(d.Header, "[]"), name)
		})
		if !described {
			t.Errorf("Describe has nothing about %s", name)
		}
	}
}
