package module

import "testing"

// A loop without end in a function that was inlined has a line of the SDK's header.
func TestOfSDK_SaysThatALineIsNotTheAuthors(t *testing.T) {
	for frame, want := range map[string]string{
		"rl_each (rl_env.h:313)": "rl_each (rl_env.h:313, a line of the SDK, into which your own function may be inlined)",
		"step (walk.c:31)":       "step (walk.c:31)",
		"step":                   "step",
	} {
		if got := ofSDK(frame); got != want {
			t.Errorf("ofSDK(%q) = %q, want %q", frame, got, want)
		}
	}
}
