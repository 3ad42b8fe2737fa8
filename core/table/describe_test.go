package table

import (
	"slices"
	"testing"
	"time"
)

func TestDescribe_ListsEveryKeyThatDecodeTakes(t *testing.T) {
	type layer struct {
		Out int `toml:"out" doc:"Width."`
	}
	type limits struct {
		Memory uint64 `toml:"memory,bytes" doc:"Most memory." default:"the runtime's"`
	}
	into := struct {
		Epochs int            `toml:"epochs" doc:"Passes." range:"1 to 9"`
		Wait   time.Duration  `toml:"wait" doc:"Pause." unit:"s"`
		Name   string         `toml:"name" doc:"Name."`
		Core   *layer         `toml:"core"`
		Nodes  []layer        `toml:"nodes" doc:"Layers."`
		By     map[string]int `toml:"by" doc:"Shares."`
		ByName map[string]layer
		Each   map[string]layer `toml:"each" name:"PATTERN"`
		Bound  any              `toml:"bound" type:"number or text" doc:"Bound."`
		Gone   int              `toml:"gone" doc:"-"`
		Start  start            `toml:"start" doc:"Start." range:"now, or a table" default:"none"`
		limits
	}{Epochs: 4, Wait: time.Minute}
	want := []Description{
		{"epochs", "integer", "4", "1 to 9", "", "Passes."},
		{"wait", "duration", `"1m"`, "", "s", "Pause."},
		{"name", "text", "", "", "", "Name."},
		{"core.out", "integer", "", "", "", "Width."},
		{"nodes", "list of tables", "[]", "", "", "Layers."},
		{"nodes[].out", "integer", "", "", "", "Width."},
		{"by", "table of integers", "{}", "", "", "Shares."},
		{"each.PATTERN.out", "integer", "", "", "", "Width."},
		{"bound", "number or text", "", "", "", "Bound."},
		{"start", "text or table", "none", "now, or a table", "", "Start."},
		{"start.after", "integer", "", "", "", "Seconds."},
		{"memory", "size", "the runtime's", "", "", "Most memory."},
	}
	got := Describe(&into)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
}
