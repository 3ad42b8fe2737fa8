package wasm

import "testing"

// That a module was checked is remembered for every later process, by its hash alone.
func TestRuntime_RemembersWhatWasChecked(t *testing.T) {
	dir := t.TempDir()
	for _, before := range []bool{false, true} {
		r, err := New(Options{CacheDir: dir})
		must(t, err)
		if got := r.Checked("a"); got != before || r.Checked("b") {
			t.Errorf("a was checked: %t, want %t; b: %t", got, before, r.Checked("b"))
		}
		r.MarkChecked("a")
		must(t, r.Close())
	}
	none, err := New(Options{CacheDir: "/dev/null"})
	must(t, err)
	defer none.Close()
	if none.MarkChecked("a"); none.Checked("a") {
		t.Error("remembered without a cache")
	}
}
