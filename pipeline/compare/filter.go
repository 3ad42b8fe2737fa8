package compare

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlhost/rlhost/core/names"
	"github.com/rlhost/rlhost/core/table"
)

// operators, the longer ones first. Numbers are compared where both sides are numbers, texts else.
var operators = []struct {
	text string
	fits func(order int) bool
}{
	{">=", func(o int) bool { return o >= 0 }}, {"<=", func(o int) bool { return o <= 0 }}, {"!=", func(o int) bool { return o != 0 }},
	{"=", func(o int) bool { return o == 0 }}, {">", func(o int) bool { return o > 0 }}, {"<", func(o int) bool { return o < 0 }},
}

// Where returns the runs that satisfy all conditions, such as env=cartpole@1, eval_return>=475 or component.learner.epochs!=4. A run
// without a value satisfies a condition with != alone.
func Where(list []*Run, conditions []string) ([]*Run, error) {
	for _, c := range conditions {
		name, fits, err := condition(c)
		if err == nil {
			err = checkName(list, name)
		}
		if err != nil {
			return nil, err
		}
		var kept []*Run
		for _, r := range list {
			value, err := r.Field(name)
			if err != nil {
				return nil, err
			}
			if fits(value) {
				kept = append(kept, r)
			}
		}
		list = kept
	}
	return list, nil
}

// formerColumn is the error about a column that has another name now.
func formerColumn(name, now string) error {
	return fmt.Errorf("runs have no column %q, did you mean %q?", name, now)
}

// checkName returns an error if a name is no column, and no key of any of the runs' pipelines.
func checkName(list []*Run, name string) error {
	known := Columns()
	if len(list) == 0 || slices.Contains(known, name) {
		return nil
	}
	for _, r := range list {
		keys, err := r.Keys()
		if err != nil {
			return err
		}
		if _, ok := keys[name]; ok {
			return nil
		}
		known = slices.AppendSeq(known, maps.Keys(keys))
	}
	if now, ok := names.Column(name); ok {
		return formerColumn(name, now)
	}
	slices.Sort(known)
	close := table.Closest(name, slices.Compact(known), 3)
	return fmt.Errorf("no column and no key of a pipeline is named %q\n  help: the closest are %s; the columns are %s", name, strings.Join(close, ", "), strings.Join(Columns(), ", "))
}

func condition(c string) (name string, fits func(value string) bool, err error) {
	at := strings.IndexAny(c, "=<>!")
	for _, o := range operators {
		if at > 0 && strings.HasPrefix(c[at:], o.text) {
			want := strings.TrimSpace(c[at+len(o.text):])
			return strings.TrimSpace(c[:at]), func(value string) bool {
				if value == "" {
					return o.text == "!="
				}
				return o.fits(order(value, want))
			}, nil
		}
	}
	return "", nil, fmt.Errorf("condition %q: write it as KEY=VALUE, or with !=, <, <=, > or >=", c)
}

func order(a, b string) int {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	switch {
	case errX != nil || errY != nil:
		return strings.Compare(a, b)
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// Group is runs with the same value of a key.
type Group struct {
	Value string
	Runs  []*Run
}

// By groups runs by a column or a key, in the order of its values.
func By(list []*Run, key string) ([]Group, error) {
	if err := checkName(list, key); err != nil {
		return nil, err
	}
	groups := map[string][]*Run{}
	for _, r := range list {
		value, err := r.Field(key)
		if err != nil {
			return nil, err
		}
		groups[value] = append(groups[value], r)
	}
	values := slices.SortedFunc(maps.Keys(groups), order)
	sorted := make([]Group, len(values))
	for i, v := range values {
		sorted[i] = Group{v, groups[v]}
	}
	return sorted, nil
}

// Differences returns the keys whose values are not the same in the pipelines of all runs, sorted. The seed and the names of
// runs and folders do not count.
func Differences(list []*Run) ([]string, error) {
	values := map[string]map[string]int{}
	for _, r := range list {
		keys, err := r.Keys()
		if err != nil {
			return nil, err
		}
		for key, v := range keys {
			if values[key] == nil {
				values[key] = map[string]int{}
			}
			values[key][v]++
		}
	}
	var differ []string
	for key, of := range values {
		total := 0
		for _, n := range of {
			total += n
		}
		if key != "run.seed" && key != "run.dir" && key != "run.name" && (len(of) > 1 || total < len(list)) {
			differ = append(differ, key)
		}
	}
	slices.Sort(differ)
	return differ, nil
}
