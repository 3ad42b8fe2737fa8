package policy

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/rlhost/rlhost/core/component"
)

// Definition is one policy of a pipeline: its network and what computes it. It implements component.Policy.
type Definition struct {
	Name    string
	Network Network
	Backend Backend
}

// Of returns the definition of a policy of that name, for components while they start.
func Of(h *component.Host, name string) (*Definition, error) {
	p, err := h.Policy(name)
	if err != nil {
		return nil, err
	}
	return DefinitionOf(name, p)
}

// DefinitionOf returns the definition that a policy is.
func DefinitionOf(name string, p component.Policy) (*Definition, error) {
	d, ok := p.(*Definition)
	if !ok {
		return nil, fmt.Errorf("policy %q is a %T, want *policy.Definition", name, p)
	}
	return d, nil
}

// SameNetwork returns nil if parameters of one policy mean the same in the other, and else both networks side by side.
func (d *Definition) SameNetwork(next component.Policy) error {
	to, err := DefinitionOf("next", next)
	if err != nil {
		return err
	}
	if reflect.DeepEqual(d.Network, to.Network) {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\n  %-14s %-24s %s", "", "running", "new")
	v, w := reflect.ValueOf(d.Network), reflect.ValueOf(to.Network)
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
