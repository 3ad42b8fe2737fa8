// Package metrics describes every metric that a run writes: the reference is made of it, and tests compare it with the files of runs.
//
//	m, ok := metrics.Find("rival/losses/entropy") // of the policy rival
//	fmt.Println(m.Unit, m.Meaning)
//
// It counts nothing; core/stat does.
package metrics

import (
	"slices"
	"strings"
)

// Kind says how the numbers of a metric come about.
type Kind string

// Kinds.
const (
	Line      Kind = "line"      // computed for the line that it is in
	Total     Kind = "total"     // computed for the line, and never falls
	Counter   Kind = "counter"   // rises from the start of the program on
	Gauge     Kind = "gauge"     // the newest value
	Histogram Kind = "histogram" // several numbers of a distribution; see Suffixes
)

// Metric describes one metric. A word in capitals in its name stands for any name, such as NAME in env/NAME.
type Metric struct {
	Name    string
	Kind    Kind
	Unit    string
	Meaning string // a sentence without its full stop
}

// Group is the metrics of one part of a run.
type Group struct {
	Title   string
	Metrics []Metric
}

// Suffix is an ending of the names that a histogram has in a line.
type Suffix struct{ Ending, Meaning string }

// Suffixes are the endings of a histogram's names.
var Suffixes = []Suffix{
	{"_count", "finite numbers observed"},
	{"_invalid", "NaNs and infinities, which are in no other number"},
	{"_mean", "mean"},
	{"_min", "smallest"},
	{"_p50", "median, within an eighth of its value"},
	{"_p90", "90th percentile, within an eighth"},
	{"_p99", "99th percentile, within an eighth"},
	{"_max", "largest"},
}

// Find returns the description of a metric by the name that it has in a file: with a histogram's ending, or with the name of a policy that
// does not lead in front, which it returns too. ok is false for the metrics of components and modules of your own.
func Find(name string) (m Metric, policy string, ok bool) {
	if m, ok = find(name); ok {
		return m, "", true
	}
	policy, rest, cut := strings.Cut(name, "/")
	if !cut {
		return Metric{}, "", false
	}
	if m, ok = find(rest); !ok {
		return Metric{}, "", false
	}
	return m, policy, true
}

// find takes the name itself, else the longest of the names that fit: env/NAME/count before env/NAME.
func find(name string) (found Metric, ok bool) {
	for _, g := range Groups {
		for _, m := range g.Metrics {
			if m.Name == name && m.Kind != Histogram {
				return m, true
			}
			if m.has(name) && (!ok || strings.Count(m.Name, "/") > strings.Count(found.Name, "/")) {
				found, ok = m, true
			}
		}
	}
	return found, ok
}

// has reports whether the metric has that name in a file.
func (m *Metric) has(name string) bool {
	if m.Kind == Histogram {
		i := slices.IndexFunc(Suffixes, func(s Suffix) bool { return strings.HasSuffix(name, s.Ending) })
		if i < 0 {
			return false
		}
		name = strings.TrimSuffix(name, Suffixes[i].Ending)
	}
	want, got := m.parts(name)
	return slices.EqualFunc(want, got, func(want, got string) bool { return want == got || anyName(want) && got != "" })
}

// parts returns the parts of the metric's name, and of the name that it has in a file.
func (m *Metric) parts(name string) (want, got []string) {
	want, got = strings.Split(m.Name, "/"), strings.Split(name, "/")
	if more := len(got) - len(want); more > 0 && want[0] == "env" && got[0] == "env" { // an environment's own name may have strokes in it
		got = append([]string{"env", strings.Join(got[1:2+more], "/")}, got[2+more:]...)
	}
	return want, got
}

// Split returns the parts of the metric's name that are always there, and what the name that it has in a file, without a policy and a
// histogram's ending, has for each word in capitals, by that word in small letters: steps/dropped and reason = fault.
func (m *Metric) Split(name string) (fixed []string, words map[string]string) {
	want, got := m.parts(name)
	words = map[string]string{}
	for i, part := range want {
		if anyName(part) {
			words[strings.ToLower(part)] = got[i]
		} else {
			fixed = append(fixed, part)
		}
	}
	return fixed, words
}

// OfPolicy reports whether each policy has the metric: what its learner reports, and the returns of its episodes.
func (m *Metric) OfPolicy() bool {
	group, _, _ := strings.Cut(m.Name, "/")
	return m.Name != "charts/SPS" && slices.Contains([]string{"charts", "losses", "lag", "eval", "global_step", "policy_version"}, group)
}

// anyName reports whether a part of a name stands for any name.
func anyName(part string) bool {
	return part != "SPS" && part == strings.ToUpper(part)
}
