package metrics

import (
	"strings"
	"testing"
)

func TestFind_KnowsTheNamesOfFiles(t *testing.T) {
	for name, want := range map[string]string{
		"charts/SPS":                "charts/SPS",
		"charts/sps":                "",
		"swap/pause_ns_p99":         "swap/pause_ns",
		"swap/pause_ns":             "",
		"env/goals":                 "env/NAME",
		"env/goals/left":            "env/NAME",
		"env/goals/left/count":      "env/NAME/count",
		"env/wrapper_faults":        "env/wrapper_faults",
		"rival/losses/entropy":      "losses/entropy",
		"version/0a1b2c3d/episodes": "version/HASH/episodes",
		"shaper/faults":             "COMPONENT/faults",
		"shaper/purses":             "",
		"steps/dropped/component.x": "steps/dropped/REASON",
		"entropy":                   "",
	} {
		if m, _, ok := Find(name); m.Name != want || ok != (want != "") {
			t.Errorf("Find(%q) = %q, %t; want %q", name, m.Name, ok, want)
		}
	}
}

func TestGroups_DescribeEachMetricOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range Groups {
		for _, m := range g.Metrics {
			if seen[m.Name] {
				t.Errorf("%s has two rows", m.Name)
			}
			seen[m.Name] = true
			if m.Unit == "" || m.Meaning == "" || strings.HasSuffix(m.Meaning, ".") {
				t.Errorf("%s: unit %q, meaning %q: want both, and no full stop", m.Name, m.Unit, m.Meaning)
			}
		}
	}
}
