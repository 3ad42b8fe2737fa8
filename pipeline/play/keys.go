package play

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
)

// None is the key that stands for no key: its action is taken while no other key is held.
const None = env.KeyNone

// Keys has the action of each key; env.ParseKeys reads others than the default ones.
type Keys env.Keys

// String lists the keys, as a person reads them. Digits that stand for themselves are one entry.
func (k Keys) String() string {
	var list []string
	digits := 0
	for k.plain(digits) {
		digits++
	}
	if digits > 0 {
		list = append(list, fmt.Sprintf("0–%d", digits-1))
	}
	for _, key := range slices.Sorted(maps.Keys(k)) {
		if key == None || len(key) == 1 && key[0] >= '0' && int(key[0]-'0') < digits {
			continue
		}
		var action []string
		for _, v := range k[key] {
			action = append(action, strconv.FormatFloat(v, 'g', 4, 64))
		}
		list = append(list, key+"="+strings.Join(action, ","))
	}
	return strings.Join(list, " ")
}

// arrows are the keys that lower and raise an element, by element.
var arrows = [...][2]string{{"left", "right"}, {"down", "up"}}

// plain reports whether a digit stands for itself.
func (k Keys) plain(digit int) bool {
	action := k[strconv.Itoa(digit)]
	return len(action) == 1 && action[0] == float64(digit)
}

// DefaultKeys are the keys of a game whose author and player have named none. A digit is a choice of the first action. The arrows lower and
// raise its first two elements, unless one has more than three choices: they have no order that is known.
func DefaultKeys(g *Game) Keys {
	keys, rest := Keys{}, slices.Clone(g.chosen)
	name := func(key string, elem int, v float64) {
		keys[key] = slices.Clone(rest)
		keys[key][elem] = v
	}
	first := g.Actions()[0]
	if first.Discrete() {
		for choice := range min(first.Count(0), 10) {
			name(strconv.Itoa(choice), 0, float64(int(first.Start)+choice))
		}
	}
	for elem := range min(len(arrows), first.Elems(hostabi.MaxTensorElems)) {
		if first.Discrete() && first.Count(elem) > 3 {
			continue
		}
		low, high := steered(&first, elem)
		name(arrows[elem][0], elem, low)
		name(arrows[elem][1], elem, high)
		if high-low == 2 && first.Discrete() {
			rest[elem] = low + 1
		}
	}
	if !first.Discrete() || first.Count(0) > 2 {
		keys[None] = rest
	}
	return keys
}

// steered are the values that arrows give to an element: its bounds, or one from 0 where there is none.
func steered(t *hostabi.Tensor, elem int) (low, high float64) {
	low, high = t.Limits(elem)
	if math.IsInf(low, 0) {
		low = min(-1, high)
	}
	if math.IsInf(high, 0) {
		high = max(1, low)
	}
	return low, high
}
