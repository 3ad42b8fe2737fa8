package table

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"
)

// level is a type with its own text form.
type level int

func (l *level) UnmarshalText(b []byte) error {
	if string(b) != "high" {
		return errors.New("want high")
	}
	*l = 7
	return nil
}

type inner struct {
	Value int `toml:"value"`
}

type shared struct {
	Common string `toml:"common"`
}

type settings struct {
	shared
	Int      int               `toml:"int"`
	Small    uint8             `toml:"small"`
	Float    float32           `toml:"float"`
	Word     string            `toml:"word"`
	Flag     bool              `toml:"flag"`
	Wait     time.Duration     `toml:"wait"`
	Memory   uint64            `toml:"memory,bytes"`
	List     []int             `toml:"list"`
	Inner    inner             `toml:"inner"`
	Optional *float64          `toml:"optional"`
	Args     map[string]string `toml:"args"`
	Level    level             `toml:"level"`
	Default  int               `toml:"default"`
	Hidden   int
}

// fromJSON keeps numbers as they are written.
func fromJSON(doc []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return d.Decode(into)
}

func decodeDoc(t *testing.T, doc string, into any) error {
	t.Helper()
	var m map[string]any
	if err := fromJSON([]byte(doc), &m); err != nil {
		t.Fatal(err)
	}
	return Decode(Plain(m), into)
}

func TestDecode_FillsTheTablesKeys(t *testing.T) {
	got := settings{Default: 5}
	err := decodeDoc(t, `{"int": -3, "small": 255, "float": 2, "word": "w", "flag": true, "wait": "200us", "memory": "16MiB",
		"list": [1, 2], "inner": {"value": 9}, "optional": 0.5, "args": {"a": "b"}, "level": "high", "common": "c"}`, &got)
	half := 0.5
	want := settings{shared: shared{"c"}, Int: -3, Small: 255, Float: 2, Word: "w", Flag: true, Wait: 200 * time.Microsecond,
		Memory: 16 << 20, List: []int{1, 2}, Inner: inner{9}, Optional: &half, Args: map[string]string{"a": "b"}, Level: 7, Default: 5}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	var m map[string]any
	if err := decodeDoc(t, `{"a": 1, "b": 1.5, "c": [2, {"d": "x"}]}`, &m); err != nil ||
		!reflect.DeepEqual(m, map[string]any{"a": int64(1), "b": 1.5, "c": []any{int64(2), map[string]any{"d": "x"}}}) {
		t.Errorf("as it stands: %#v, %v", m, err)
	}
}

func TestDecode_NamesTheErrors(t *testing.T) {
	for doc, want := range map[string]Error{
		`{"int": 1.5}`:                 {Key: "int", Reason: "must be an integer", Code: "E003"},
		`{"int": "1"}`:                 {Key: "int", Reason: "must be an integer", Help: "write 1, without quotes", Code: "E003"},
		`{"int": 9223372036854775808}`: {Key: "int", Reason: "must be an integer", Code: "E003"},
		`{"small": 256}`:               {Key: "small", Reason: "is 256, which does not fit in 8 bits", Code: "E005"},
		`{"small": -1}`:                {Key: "small", Reason: "is -1, must be 0 or more", Code: "E005"},
		`{"float": 1e60}`:              {Key: "float", Reason: "is 1e+60, must be a finite number", Code: "E005"},
		`{"float": "3e-4"}`:            {Key: "float", Reason: "must be a number", Help: "write 3e-4, without quotes", Code: "E003"},
		`{"float": "x"}`:               {Key: "float", Reason: "must be a number", Code: "E003"},
		`{"word": 1}`:                  {Key: "word", Reason: "must be a string", Help: `write "1"`, Code: "E003"},
		`{"flag": "true"}`:             {Key: "flag", Reason: "must be true or false", Help: "write true, without quotes", Code: "E003"},
		`{"flag": "yes"}`:              {Key: "flag", Reason: "must be true or false", Code: "E003"},
		`{"wait": 5}`:                  {Key: "wait", Reason: `must be a duration such as "200us", "30s" or "10m"`, Help: "put number and unit in quotes", Code: "E003"},
		`{"wait": "5"}`:                {Key: "wait", Reason: `must be a duration, "5" is none`, Help: `write "200us", "30s", "10m" or "1h30m"`, Code: "E003"},
		`{"wait": "-5s"}`:              {Key: "wait", Reason: "is -5s, must be 0 or more", Code: "E005"},
		`{"memory": "16MB"}`:           {Key: "memory", Reason: `must be a size, "16MB" is none`, Help: `write "64KiB", "16MiB" or "1GiB"`, Code: "E003"},
		`{"memory": "99999999999GiB"}`: {Key: "memory", Reason: `must be a size, "99999999999GiB" is none`, Help: `write "64KiB", "16MiB" or "1GiB"`, Code: "E003"},
		`{"list": 1}`:                  {Key: "list", Reason: "must be a list", Code: "E003"},
		`{"list": [1, "x"]}`:           {Key: "list[1]", Reason: "must be an integer", Code: "E003"},
		`{"inner": 1}`:                 {Key: "inner", Reason: "must be a table", Code: "E003"},
		`{"inner": {"value": "x"}}`:    {Key: "inner.value", Reason: "must be an integer", Code: "E003"},
		`{"inner": {"valve": 1}}`:      {Key: "inner.valve", Reason: "is not a key of this table", Help: "did you mean `value`?", Code: "E002"},
		`{"args": {"a": 1}}`:           {Key: "args.a", Reason: "must be a string", Help: `write "1"`, Code: "E003"},
		`{"level": "low"}`:             {Key: "level", Reason: "want high", Code: "E005"},
		`{"Hidden": 1}`:                {Key: "Hidden", Code: "E002", Reason: "is not a key of this table", Help: "keys: args, common, default, flag, float, inner, int, level, list, memory, optional, small, wait, word"},
	} {
		err := decodeDoc(t, doc, new(settings))
		list := All(err)
		if len(list) != 1 || list[0].At == nil {
			t.Errorf("%s: %v, want one error", doc, err)
			continue
		}
		got := Error{Key: list[0].Key, Reason: list[0].Reason, Help: list[0].Help, Code: list[0].Code}
		if got != want {
			t.Errorf("%s: %+v, want %+v", doc, got, want)
		}
	}
	list := All(decodeDoc(t, `{"word": 1, "int": "x", "none": 0}`, new(settings)))
	var keys []string
	for _, e := range list {
		keys = append(keys, e.Key)
	}
	if !slices.Equal(keys, []string{"int", "none", "word"}) {
		t.Errorf("keys %v", keys)
	}
	if err := Decode(Plain(nil), settings{}); err == nil {
		t.Error("a struct by value was taken")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"int": -3, "small": 255, "float": 2, "wait": "200us", "memory": "16MiB", "list": [1, 2]}`))
	f.Add([]byte(`{"inner": {"value": 9}, "args": {"a": "b"}, "optional": null, "level": []}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		var m map[string]any
		if json.Unmarshal(doc, &m) != nil || fromJSON(doc, &m) != nil {
			return
		}
		var into settings
		_ = Decode(Plain(m), &into)
		_ = Decode(Plain(m), &m)
	})
}
