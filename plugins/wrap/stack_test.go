package wrap_test

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/plugintest"
	"github.com/rlhost/rlhost/plugins/wrap"
)

// Frames are stacked where policies read them: nothing is put around the environments.
func TestFrameStack_IsTheLastAndNothingAroundEnvironments(t *testing.T) {
	inner := plugintest.New(uneven())
	if p, err := wrap.New(inner, []env.Wrapper{{"frame_stack": int64(4)}}, nil); err != nil || p != env.Plugin(inner) {
		t.Errorf("New: %v, %v, want the plugin itself", p, err)
	}
	for want, list := range map[string][]env.Wrapper{
		"`wrap[0].frame_stack` is not the last of the list": {{"frame_stack": int64(4)}, {"time_limit": int64(5)}},
		"`wrap[0].frame_stack` is 0, want 1 frame or more":  {{"frame_stack": int64(0)}},
	} {
		if _, err := wrap.New(inner, list, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", list, err, want)
		}
	}
}
