package native

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

func TestPage_NamesEveryCallFrameAndCapability(t *testing.T) {
	const page = "../../docs/reference/native-protocol.md"
	testkit.Documented(t, page, MethodDescribe, MethodConfigure, MethodStart, MethodSnapshot, MethodRestore, MethodPause, MethodResume,
		MethodWaiting, MethodCut, MethodStop, MethodEnvLoad, MethodEnvMake, MethodEnvState)
	testkit.Documented(t, page, CapSnapshot, CapPause, CapCut, CapEnv, CapEnvState)
	testkit.Documented(t, page, CookieKey, CookieValue, Service, TransportKey, TransportRings)
	for f := range reflect.TypeFor[Frame]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		testkit.Documented(t, page, name)
	}
}
