package builtin

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/rlhost/rlhost/gpu/policy"
)

// sameNetwork returns nil if two policies have parameters that mean the same, and else both networks side by side; see
// graph.Parts.
func sameNetwork(running, next any) error {
	a, ok := running.(*policy.Definition)
	b, too := next.(*policy.Definition)
	if !ok || !too {
		return fmt.Errorf("policies are a %T and a %T, want *policy.Definition", running, next)
	}
	if reflect.DeepEqual(a.Network, b.Network) {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n  %-14s %-24s %s", "", "running", "new")
	v, w := reflect.ValueOf(a.Network), reflect.ValueOf(b.Network)
	for i := range v.NumField() {
		key, was, is := v.Type().Field(i).Tag.Get("json"), fmt.Sprint(v.Field(i)), fmt.Sprint(w.Field(i))
		mark := " "
		if was != is {
			mark = "*"
		}
		fmt.Fprintf(&text, "\n%s %-14s %-24s %s", mark, key, was, is)
	}
	return errors.New(text.String())
}
