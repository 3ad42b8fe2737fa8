package plugintest_test

import (
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

func TestRuntime_Builtin(t *testing.T) {
	plugintest.TestRuntime(t, plugintest.RuntimeHarness{
		New:   func(testing.TB) component.Component { return plugintest.NewProbe() },
		Rests: true,
	})
}
