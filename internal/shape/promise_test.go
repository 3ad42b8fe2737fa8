package shape

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// promised are the packages that programs may rely on; doc.go at the root says so.
const promised = "rlhost hostabi/... sdk/... pipeline/graph pipeline/session"

// notYet are promised packages whose examples need others: an environment in Go implements core/env, and a run is shown with
// its parts.
const notYet = "sdk/process sdk/c/... pipeline/..."

// Examples import promised packages alone. This holds for example plugins, except a learner with its own kernels, and for the
// examples that go doc shows.
func TestShape_ExamplesUsePromisedPackages(t *testing.T) {
	t.Parallel()
	const may = promised + " examples/plugins/..."
	for _, s := range sources(t) {
		shown := path.Base(s.path) == "example_test.go" && fitsAny(promised, s.dir) && !fitsAny(notYet, s.dir)
		plugin := strings.HasPrefix(s.dir, "examples/plugins/") && !s.test && s.dir != "examples/plugins/gorgonia-learner"
		if !shown && !plugin {
			continue
		}
		for _, name := range s.imports() {
			if !fitsAny(may, name) {
				t.Errorf("%s imports %s, which is not promised", s.path, name)
			}
		}
	}
}

func fitsAny(patterns, name string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(pattern string) bool { return fits(pattern, name, "") })
}
