package env

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

// CodeKeys is the code of a key that people cannot play with; rlhost explain has its page.
const CodeKeys = "E119"

// KeyNone is the key that stands for no key: its action is taken while no other one is held.
const KeyNone = "none"

// keyNames are keys that are no single character.
var keyNames = []string{"left", "right", "up", "down", "space", "enter", "tab", KeyNone}

// Keys are the actions of keys: a number for each element of all the agent's actions.
type Keys map[string][]float64

// CheckKeys is ParseKeys for a person who may play an agent of any group.
func CheckKeys(written map[string]string, spec *hostabi.EnvSpec) error {
	var first error
	for group := range max(len(spec.Groups), 1) {
		_, err := ParseKeys(written, spec, group)
		if err == nil {
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// OwnKeys are the keys that the environment's description has for an agent of a group, nil where it has none or they are of another group.
func OwnKeys(spec *hostabi.EnvSpec, group int) Keys {
	written, err := splitKeys(spec.Keys)
	if err != nil || len(written) == 0 {
		return nil
	}
	keys, err := ParseKeys(written, spec, group)
	if err != nil {
		return nil
	}
	return keys
}

// CheckOwnKeys says why nobody can play with the keys of an environment's description.
func CheckOwnKeys(spec *hostabi.EnvSpec) error {
	written, err := splitKeys(spec.Keys)
	if err != nil {
		return err
	}
	return CheckKeys(written, spec)
}

// splitKeys takes lines such as left=0 apart. The key may be = itself.
func splitKeys(lines string) (map[string]string, error) {
	written := map[string]string{}
	for line := range strings.Lines(lines) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndex(line, "=")
		if at < 1 {
			return nil, fmt.Errorf("the line %q of keys is not KEY=ACTION", line)
		}
		if _, twice := written[line[:at]]; twice {
			return nil, fmt.Errorf("keys has %q twice", line[:at])
		}
		written[line[:at]] = line[at+1:]
	}
	return written, nil
}

// ParseKeys reads actions, such as "1" or "[-1,0.5]", of keys, for an agent of a group. The error joins a table.Error for each key that there is
// not, and for each action outside of its space.
func ParseKeys(written map[string]string, spec *hostabi.EnvSpec, group int) (Keys, error) {
	of := spec.OfGroup(group)
	actions := of.All(hostabi.RoleAction)
	keys := Keys{}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(written)) {
		if !slices.Contains(keyNames, key) && utf8.RuneCountInString(key) != 1 {
			errs = append(errs, &table.Error{Code: CodeKeys, Key: "keys." + key, Reason: "is no key",
				Help: table.DidYouMean(key, "`%s`", "keys are single characters and", keyNames)})
			continue
		}
		action, err := parseAction(written[key], actions)
		if err != nil {
			errs = append(errs, &table.Error{Code: CodeKeys, Key: "keys." + key, Reason: err.Error(),
				Help: "write a number, or a list where an action has several elements"})
			continue
		}
		keys[key] = action
	}
	return keys, errors.Join(errs...)
}

func parseAction(written string, actions []hostabi.Tensor) (action []float64, err error) {
	for text := range strings.SplitSeq(strings.Trim(written, "[]"), ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil, fmt.Errorf("is %q, which is no number", written)
		}
		action = append(action, v)
	}
	elems := 0
	for i := range actions {
		elems += actions[i].Elems(hostabi.MaxTensorElems)
	}
	if len(action) != elems {
		return nil, fmt.Errorf("has %d numbers, and an action has %d", len(action), elems)
	}
	if err := CheckAction(action, actions); err != nil {
		return nil, fmt.Errorf("is %w", err)
	}
	return action, nil
}

// CheckAction says which number of an action is outside of its space. There is one for each element, the first action's before the next one's.
func CheckAction(values []float64, actions []hostabi.Tensor) error {
	for i := range actions {
		t := &actions[i]
		for e := range t.Elems(hostabi.MaxTensorElems) {
			low, high := t.Limits(e)
			if v := values[0]; !(v >= low && v <= high) || t.Discrete() && v != math.Trunc(v) {
				return fmt.Errorf("%v, want %v to %v", v, low, high)
			}
			values = values[1:]
		}
	}
	return nil
}
