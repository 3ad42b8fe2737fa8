package env

import (
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/hostabi"
)

func TestCheckArgs_ChecksThemAgainstTheDescription(t *testing.T) {
	described := []hostabi.Arg{
		{Name: "size", Doc: "side of the board", Type: hostabi.ArgInteger, Min: 2, Max: 19, Default: "9"},
		{Name: "wind", Type: hostabi.ArgNumber, Min: -1, Max: 1, Default: "0.5"},
		{Name: "loud", Type: hostabi.ArgBool},
		{Name: "rules", Type: hostabi.ArgChoice, Choices: []string{"chinese", "japanese"}, Default: "chinese"},
		{Name: "title", Doc: "what it is called", Type: hostabi.ArgText},
	}
	for _, c := range []struct {
		key, value string
		want       string // code, reason and help; empty if it is taken
	}{
		{"size", "19", ""}, {"size", "2", ""}, {"wind", "-1", ""}, {"wind", "2.5e-1", ""}, {"loud", "true", ""}, {"rules", "japanese", ""}, {"title", "", ""},
		{"sizes", "9", "E002 is not an argument of this environment; did you mean `size`? arguments: loud, rules, size, title, wind"},
		{"zzz", "9", "E002 is not an argument of this environment; arguments: loud, rules, size, title, wind"},
		{"size", "1", "E005 is 1, want a whole number from 2 to 19; side of the board; default 9"},
		{"size", "9.5", "E003 is \"9.5\", want a whole number from 2 to 19; side of the board; default 9"},
		{"wind", "fast", "E003 is \"fast\", want a number from -1 to 1; the default is 0.5"},
		{"wind", "inf", "E003 is \"inf\", want a number from -1 to 1; the default is 0.5"},
		{"loud", "1", "E003 is \"1\", want true or false; write true or false"},
		{"rules", "go", "E005 is \"go\", want one of chinese, japanese; the default is chinese"},
	} {
		err := CheckArgs(described, map[string]string{c.key: c.value})
		got := ""
		if list := table.All(err); len(list) == 1 && list[0].Key == "args."+c.key {
			got = list[0].Code + " " + list[0].Reason + "; " + list[0].Help
		}
		if got != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s = %q: %q, %v; want %q", c.key, c.value, got, err, c.want)
		}
	}
	if err := CheckArgs(nil, map[string]string{"anything": "goes"}); err != nil {
		t.Errorf("an environment that describes no arguments: %v", err)
	}
	var keys []string
	for _, e := range table.All(CheckArgs(described, map[string]string{"b": "1", "a": "2", "size": "x", "title": "y"})) {
		keys = append(keys, e.Key)
	}
	if want := []string{"args.a", "args.b", "args.size"}; !slices.Equal(keys, want) {
		t.Errorf("errors about %v, want %v", keys, want)
	}
}
