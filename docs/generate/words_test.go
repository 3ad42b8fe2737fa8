package main

import (
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/names"
)

// Every key that a word of another program, or of an earlier version, stands for is a key of that table.
func TestWords_StandForKeysThatThereAre(t *testing.T) {
	have := map[string]bool{}
	for _, d := range parts(t).Describe() {
		for _, k := range d.Keys {
			for key := d.Path + "." + k.Key; key != d.Path; key = key[:strings.LastIndex(key, ".")] { // inline tables are keys, too
				have[key] = true
			}
			if d.Header == "[component.NAME]" {
				have["component.rollout."+k.Key] = true
			}
		}
	}
	for word, keys := range names.All() {
		for _, k := range keys {
			if k.Table != "" && !have[k.Table+"."+k.Name] {
				t.Errorf("%s stands for %s in [%s], which has no such key", word, k.Name, k.Table)
			}
		}
	}
}
