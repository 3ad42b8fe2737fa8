package control

import (
	"slices"
	"strings"
	"testing"
)

func TestMatch_NamesInstancesComponentsAndKinds(t *testing.T) {
	cases := []struct {
		pattern, name, kind string
		want                bool
	}{
		{"rollout", "rollout", "rollout", true},
		{"rollout", "rollout[2]", "rollout", true},
		{"rollout", "rollout2", "rollout", false},
		{"rollout", "actors", "rollout", false},
		{"rollout[2]", "rollout[2]", "rollout", true},
		{"rollout[2]", "rollout[22]", "rollout", false},
		{"rollout[2]", "rollout", "rollout", false},
		{"rollout[*]", "rollout[22]", "rollout", true},
		{"rollout[*]", "rollout", "rollout", false},
		{"rollout[1?]", "rollout[12]", "rollout", true},
		{"rollout[1?]", "rollout[1]", "rollout", false},
		{"*", "learner-2_b", "learner", true},
		{"l*r", "learner", "learner", true},
		{"l*n*r", "learner[0]", "learner", true},
		{"l*x*r", "learner", "learner", false},
		{"?earner", "learner", "learner", true},
		{"?earner", "earner", "learner", false},
		{"*[0]", "learner[0]", "learner", true},
		{"kind:learner", "l2", "learner", true},
		{"kind:learner", "learner", "batcher", false},
		{"kind:*er", "b", "batcher", true},
		{"kind:rollout", "rollout[3]", "rollout", true},
		{strings.Repeat("a*", 200) + "b", strings.Repeat("a", 4000), "", false},
	}
	for _, c := range cases {
		if got, err := Match(c.pattern, c.name, c.kind); err != nil || got != c.want {
			t.Errorf("Match(%q, %q, %q) = %v, %v; want %v", c.pattern, c.name, c.kind, got, err, c.want)
		}
	}
}

func TestMatch_RefusesMalformedPatterns(t *testing.T) {
	for _, pattern := range []string{"", "kind:", "rollout[", "rollout[]", "rollout[x]", "rollout[1", "rollout[1]x", "[1]",
		"rollout]", "rol lout", "kind:rollout[1]", "kind:kind:a", "a.b", "é", "rollout[1][2]", "\x00"} {
		if got, err := Match(pattern, "rollout", "rollout"); err == nil || got {
			t.Errorf("Match(%q) = %v, %v; want an error", pattern, got, err)
		}
	}
}

func TestSelect_KeepsTheOrderAndNamesUnknownPatterns(t *testing.T) {
	members := []Member{{Name: "rollout[0]", Kind: "rollout"}, {Name: "rollout[1]", Kind: "rollout"},
		{Name: "learner", Kind: "learner"}, {Name: "batcher", Kind: "batcher"}}
	cases := map[string][]string{
		"":                                {"rollout[0]", "rollout[1]", "learner", "batcher"},
		"learner rollout[1] kind:learner": {"rollout[1]", "learner"},
		"* rollout":                       {"rollout[0]", "rollout[1]", "learner", "batcher"},
	}
	for patterns, want := range cases {
		got, err := Select(members, strings.Fields(patterns))
		var names []string
		for _, m := range got {
			names = append(names, m.Name)
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("Select(%q) = %v, %v; want %v", patterns, names, err, want)
		}
	}
	if _, err := Select(members, []string{"rollout", "lerner"}); code(t, err) != CodeUnknown || err.Error() != `no component is called "lerner"` {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := Select(members, []string{"rollout["}); code(t, err) != CodeBad {
		t.Errorf("a malformed pattern: %v", err)
	}
}

// FuzzMatch: a valid pattern matches its own name if it has no stars, and nothing makes it slow or panic.
func FuzzMatch(f *testing.F) {
	f.Add("rollout", "rollout[2]", "rollout")
	f.Add("r*t[?*]", "rollout[12]", "rollout")
	f.Add("kind:l*", "x", "learner")
	f.Add("[", "]", "[")
	f.Add("a*a*a*b", "aaaaaaaaaaaaaaaa", "")
	f.Fuzz(func(t *testing.T, pattern, name, kind string) {
		got, err := Match(pattern, name, kind)
		if err != nil {
			if got {
				t.Errorf("Match(%q) = true and %v", pattern, err)
			}
			return
		}
		if rest, ok := strings.CutPrefix(pattern, kindPrefix); ok {
			if !strings.ContainsAny(rest, "*?") && got != (rest == kind) {
				t.Errorf("Match(%q, kind %q) = %v", pattern, kind, got)
			}
			return
		}
		if self, err := Match(pattern, pattern, kind); err != nil || !self {
			t.Errorf("%q does not match itself: %v", pattern, err)
		}
	})
}
