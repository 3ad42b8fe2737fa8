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
	testkit.Documented(t, "../../docs/how-to/network.md", activations...)
	testkit.Documented(t, "../../docs/how-to/network.md", encoderKinds...)
	testkit.Documented(t, "../../docs/how-to/network.md", norms...)
	testkit.Documented(t, "../../docs/how-to/network.md", lastInputs...)
	for kind := range imageKinds {
		testkit.Documented(t, "../../docs/how-to/network.md", string(kind))
	}
	testkit.Documented(t, "../../docs/how-to/network.md", slices.Collect(maps.Keys(backends()))...)
	testkit.Documented(t, "../../docs/how-to/choose-a-preset.md", slices.Collect(maps.Keys(graph.DefaultPresets()))...)
	testkit.Documented(t, "../../docs/contributing/architecture.md", slices.Collect(maps.Keys(Kinds(runner.Output{})))...)
}
