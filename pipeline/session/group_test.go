package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/place"
	"github.com/rlhost/rlhost/internal/testkit"
)

// pinned counts the threads of this process that run on these processors alone.
func pinned(t *testing.T, cores place.Cores) (n int) {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		status, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/status") // the thread may have ended
		if strings.Contains(string(status), "Cpus_allowed_list:\t"+cores.String()+"\n") {
			n++
		}
	}
	return n
}

// A group is scaled as one: its members come and go in pairs, each pair with an event loop of its own on the group's processors.
func TestScale_AGroupsMembersStayPairs(t *testing.T) {
	all, err := place.Available()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1:]
	group := `group.actors={ components = ["rollout", "inference"], count = 2, cores = "` + last.String() + `" }`
	r := begin(t, group)
	r.learns()
	threads := func(want int) {
		t.Helper()
		if len(all) == 1 {
			return // every thread runs on the one processor
		}
		testkit.Until(t, fmt.Sprintf("%d threads run on processor %v alone", want, last), func() bool { return pinned(t, last) == want })
	}
	for _, count := range []int{3, 1, 2} {
		r.mustDo(control.VerbScale, control.ScaleRequest{Components: map[string]int{"actors": count}}, nil)
		var status control.StatusReply
		r.mustDo(control.VerbStatus, control.StatusRequest{}, &status)
		pairs := 0
		for i := range status.Components {
			if c := &status.Components[i]; c.Group == "actors" && c.Placed.Cores == last.String() {
				pairs++
			}
		}
		if pairs != 2*count {
			t.Errorf("with count = %d the group has %d instances, want %d", count, pairs, 2*count)
		}
		threads(count)
		r.learns()
	}
	var e *control.Error
	err = r.do(t.Context(), control.VerbScale, control.ScaleRequest{Components: map[string]int{"rollout": 4}}, nil, nil)
	if !errors.As(err, &e) || e.Help != "rlhost scale actors=4" {
		t.Errorf("scaling one member: %v", err)
	}
	path, err := filepath.Abs("pipeline.toml")
	if err != nil {
		t.Fatal(err)
	}
	r.mustDo(control.VerbReload, control.ReloadRequest{File: path, Source: file, Sets: []string{group, "group.actors.cores=" + strconv.Quote(all.String())}}, nil)
	threads(0)
	r.learns()
}
