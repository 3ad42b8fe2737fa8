package native

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestU64_IsAStringWithAllOfItsBits(t *testing.T) {
	const past = 1<<53 + 1 // a float64 does not have it
	w := Waiting{Slot: "s", Handle: math.MaxUint64, Inline: [2]U64{past, 1 << 63}}
	for _, c := range []struct {
		document any
		has      string
	}{
		{w, `"handle":"18446744073709551615"`}, {w, `"inline":["9007199254740993","9223372036854775808"]`},
		{Run{Seed: past}, `"seed":"9007199254740993"`}, {EnvBatch{Seed: past}, `"seed":"9007199254740993"`},
		{Port{Schema: past}, `"schema":"9007199254740993"`}, {Run{}, `"seed":"0"`},
	} {
		doc, err := json.Marshal(c.document)
		if err != nil || !strings.Contains(string(doc), c.has) {
			t.Errorf("got %s (%v), want %s in it", doc, err, c.has)
		}
	}
	doc, err := json.Marshal(w)
	var got Waiting
	if err != nil || json.Unmarshal(doc, &got) != nil || got != w {
		t.Errorf("got %+v (%v), want %+v", got, err, w)
	}
}

func TestU64_IsReadFromAStringOfDigitsAlone(t *testing.T) {
	for text, want := range map[string]U64{`"0"`: 0, `"42"`: 42, `"18446744073709551615"`: math.MaxUint64, `null`: 0} {
		got := U64(0)
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is read as %d (%v), want %d", text, got, err, want)
		}
	}
	for text, why := range map[string]string{
		`42`: "is no number of 64 bits, which is a string of decimal digits", `true`: "string of decimal digits", `["1"]`: "string of decimal digits",
		`""`: "no decimal number", `"-1"`: "no decimal number", `"1.0"`: "no decimal number", `"0x1"`: "no decimal number", `" 1"`: "no decimal number",
		`"18446744073709551616"`: "from 0 to 2^64-1",
	} {
		got := U64(7)
		if err := json.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), why) || got != 7 {
			t.Errorf("%s is read as %d (%v), want an error that says %q", text, got, err, why)
		}
	}
}
