package table

import "testing"

// start may be the word now.
type start struct {
	Now   bool
	After int `toml:"after" doc:"Seconds."`
}

func (s *start) SetWord(word string) { s.Now = word == "now" }

func (s start) Word() (string, bool) { return "now", s.Now }

type starting struct {
	Start start `toml:"start"`
}

func TestWord_IsReadAndWrittenInPlaceOfATable(t *testing.T) {
	for doc, want := range map[string]struct {
		start start
		text  string
	}{
		`{"start": "now"}`:        {start{Now: true}, `"now"`},
		`{"start": {"after": 3}}`: {start{After: 3}, `{ after = 3 }`},
	} {
		var got starting
		if err := decodeDoc(t, doc, &got); err != nil || got.Start != want.start {
			t.Errorf("%s: %+v, %v", doc, got, err)
		}
		if text := EncodeValue(got.Start); text != want.text {
			t.Errorf("%s is written %s, want %s", doc, text, want.text)
		}
	}
	for doc, want := range map[string]string{
		`{"start": 1}`:             "`start` must be a word or a table",
		`{"start": {"before": 1}}`: "`start.before` is not a key of this table: keys: after",
	} {
		if err := decodeDoc(t, doc, new(starting)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", doc, err, want)
		}
	}
}
