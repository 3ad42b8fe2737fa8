package graph

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/bus"
)

func TestWords_EqualTheBuss(t *testing.T) {
	for i, word := range []string{"all", "queue", "latest", "reply"} {
		if m, err := bus.ParseMode(word); err != nil || int(m) != i || modeNames[i] != word {
			t.Errorf("mode %q is %v, %v", word, m, err)
		}
	}
	if next := bus.Mode(len(modeNames)).String(); !strings.HasPrefix(next, "mode(") {
		t.Errorf("the bus has a mode %q more", next)
	}
	for i, word := range fullNames {
		if o, err := bus.ParseOverflow(word); err != nil || int(o) != i {
			t.Errorf("on_full %q is %v, %v", word, o, err)
		}
	}
	if next := bus.Overflow(len(fullNames)).String(); !strings.Contains(next, "(") {
		t.Errorf("the bus has an overflow policy %q more", next)
	}
}
