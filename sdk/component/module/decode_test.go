package module

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

type settings struct {
	Name  string        `toml:"name"`
	On    bool          `toml:"on"`
	N     int32         `toml:"n"`
	U     uint8         `toml:"u"`
	X     float64       `toml:"x"`
	Wait  time.Duration `toml:"wait"`
	Room  int64         `toml:"room,bytes"`
	List  []int         `toml:"list"`
	Maybe *float64      `toml:"maybe"`
	Inner struct {
		Y float32 `toml:"y"`
	} `toml:"inner"`
	hidden int
	Free   int
}

func TestDecode_FillsWhatIsGiven(t *testing.T) {
	c := settings{X: 2, Name: "left", hidden: 3}
	err := decoder("inner.y=0.5\nlist=1,2,3\nmaybe=4\nn=-7\non=true\nroom=16MiB\nu=255\nwait=1m30s\n")(&c)
	if err != nil {
		t.Fatal(err)
	}
	four := 4.0
	want := settings{hidden: 3, Name: "left", On: true, N: -7, U: 255, X: 2, Wait: 90 * time.Second, Room: 16 << 20, List: []int{1, 2, 3}, Maybe: &four}
	want.Inner.Y = 0.5
	if !reflect.DeepEqual(c, want) {
		t.Errorf("%+v, want %+v", c, want)
	}
}

func TestDecode_NamesWhatIsWrong(t *testing.T) {
	for line, want := range map[string]string{
		"n=x": "n: must be an integer", "n=5000000000": "n: must be an integer", "u=-1": "u: must be an integer, 0 or more", "x=": "x: must be a number",
		"on=yes": "on: must be true or false", "wait=5": "wait: must be a duration", "room=much": "room: must be a size, such as 16MiB",
		"room=9000000TiB": "room: must be a size, such as 16MiB", "list=1,b": "list: must be a list, each an integer", "other=1": "other: is not known",
		"inner.z=1": "inner.z: is not known", "hidden=1": "hidden: is not known", "Free=1": "Free: is not known",
	} {
		err := decoder(line + "\n")(&settings{})
		if err == nil || configWords(err) != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

func TestConfigWords_HaveTheHelpAfterTheKey(t *testing.T) {
	err := decoder("a=1\nb=2\n")(&struct{}{})
	if got := configWords(err); got != "a: is not known\nb: is not known" {
		t.Errorf("%q", got)
	}
	if got := configWords(&component.ConfigError{Key: "k", Reason: "is bad", Help: "write 0"}); got != "k: is bad\n  write 0" {
		t.Errorf("%q", got)
	}
}

func TestDescribe_IsAManifest(t *testing.T) {
	c := &component.Declared{
		Signals: []component.Output{{Name: "out", Payload: "p", Doc: "it", Schema: 5}},
		Slots: []component.Input{{Name: "on_none", Payload: "p"}, {Name: "in", Payload: "q", Columns: []component.Want{
			{Name: "reward"}, {Name: "state", DType: hostabi.F64, Write: true}, {Name: "mask", Optional: true}}}},
	}
	got, err := hostabi.ParseManifest(describe("both@2", c))
	if err != nil || got.Name != "both@2" || got.Signals[0].Schema != 5 || got.Slots[0].Flags != hostabi.PortBlocks || got.Flags != hostabi.ComponentStateless {
		t.Errorf("%+v, %v", got, err)
	}
	want := []hostabi.ManifestColumn{{Slot: 1, Name: "reward"}, {Slot: 1, Name: "state", Flags: hostabi.ColumnWrite, DType: hostabi.F64},
		{Slot: 1, Name: "mask", Flags: hostabi.ColumnOptional}}
	if !slices.Equal(got.Columns, want) {
		t.Errorf("columns %+v, want %+v", got.Columns, want)
	}
	c.State = &struct{ N uint32 }{}
	if got, err := hostabi.ParseManifest(describe("both@2", c)); err != nil || got.Flags != 0 {
		t.Errorf("with a state: %+v, %v", got, err)
	}
	c = &component.Declared{Slots: []component.Input{{Name: "not snake"}}}
	if _, err := hostabi.ParseManifest(describe("both", c)); err == nil || !strings.Contains(err.Error(), "snake_case") {
		t.Errorf("a bad name: %v", err)
	}
}
