package results

import (
	"strings"
	"testing"
)

// Anyone may name a folder: no form of a list passes its escapes to a terminal.
func TestProgram_ShowsNoEscapes(t *testing.T) {
	const name = "z\x1b]0;pwn\x07\u009b31m\u202e\n\t/0001"
	for _, form := range []string{"table", "csv", "json"} {
		var out strings.Builder
		p := &Program{Out: &out}
		if err := p.rows([][]string{{"run", "x\x1b[2J"}, {name, "1"}}, form); err != nil {
			t.Fatal(err)
		}
		if form != "json" && strings.Count(out.String(), "\n") != 2 || strings.ContainsAny(out.String(), "\x1b\x07") {
			t.Errorf("%s: %q", form, out.String())
		}
		if form != "json" && (!strings.Contains(out.String(), "z?]0;pwn??31m?") || strings.ContainsAny(out.String(), "\u009b\u202e")) {
			t.Errorf("%s: %q", form, out.String())
		}
	}
	var out strings.Builder
	p := &Program{Out: &out}
	if p.printf("removed %s\n", name); out.String() != "removed z?]0;pwn??31m?\n\t/0001\n" {
		t.Errorf("%q", out.String())
	}
}
