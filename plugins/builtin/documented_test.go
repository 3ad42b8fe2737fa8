package builtin

import (
	"maps"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/runner"
)

func TestDocs_TellOfEachRowOfARegistry(t *testing.T) {
	testkit.Documented(t, "policies.md", activations...)
	testkit.Documented(t, "policies.md", encoderKinds...)
	testkit.Documented(t, "policies.md", norms...)
	testkit.Documented(t, "policies.md", lastInputs...)
	for kind := range imageKinds {
		testkit.Documented(t, "policies.md", string(kind))
	}
	testkit.Documented(t, "policies.md", slices.Collect(maps.Keys(backends()))...)
	testkit.Documented(t, "learning.md", slices.Collect(maps.Keys(graph.DefaultPresets()))...)
	testkit.Documented(t, "architecture.md", slices.Collect(maps.Keys(Kinds(runner.Output{})))...)
}
