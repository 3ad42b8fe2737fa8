package envcheck

import (
	"strings"
	"testing"
)

func TestExplain_HasAPageForEveryCheck(t *testing.T) {
	for _, k := range checks() {
		page, ok := Explain(strings.ToLower(k.id))
		if !ok {
			t.Errorf("%s has no page", k.id)
			continue
		}
		if title, _, _ := strings.Cut(page, "\n"); title != k.id+" "+k.title {
			t.Errorf("page of %s begins with %q, want %q", k.id, title, k.id+" "+k.title)
		}
		if !strings.Contains(page, "Fix: ") {
			t.Errorf("page of %s has no fix", k.id)
		}
	}
	for _, id := range []string{"", "D", "D99", "# "} {
		if page, ok := Explain(id); ok {
			t.Errorf("Explain(%q) = %q, want none", id, page)
		}
	}
}
