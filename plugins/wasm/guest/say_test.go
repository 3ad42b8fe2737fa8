package guest

import (
	"testing"
	"time"
)

func TestLineLimit_CountsWhatItDrops(t *testing.T) {
	var l lineLimit
	now := time.Unix(1000, 0)
	for range burst {
		if ok, _ := l.allow(now); !ok {
			t.Fatal("a line of the first burst was dropped")
		}
	}
	for range 7 {
		if ok, _ := l.allow(now); ok {
			t.Fatal("a line too many")
		}
	}
	if ok, dropped := l.allow(now.Add(time.Second)); !ok || dropped != 7 {
		t.Errorf("a second later: %v, %d dropped, want true, 7", ok, dropped)
	}
}
