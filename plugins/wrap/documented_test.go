package wrap

import (
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

func TestDocs_TellOfEachWrapper(t *testing.T) {
	testkit.Documented(t, "../../docs/environments.md", names()...)
}
