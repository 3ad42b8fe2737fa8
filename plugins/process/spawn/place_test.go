package spawn

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/place"
)

// placed describes where this process and all of its threads have been from the beginning: processors, priority, variables for libraries.
func placed() string {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err.Error()
	}
	var words []string
	note := func(word string) {
		if len(words) == 0 || words[len(words)-1] != word {
			words = append(words, word)
		}
	}
	for _, thread := range threads {
		status, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/status")
		_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
		list, _, _ = strings.Cut(list, "\n")
		var id int
		_, _ = fmt.Sscan(thread.Name(), &id)
		raw, err := unix.Getpriority(unix.PRIO_PROCESS, id)
		if err == nil { // the thread may have ended
			note(fmt.Sprintf("cores %s, nice %d", list, 20-raw))
		}
	}
	return fmt.Sprint(strings.Join(words, "; "), ", OMP_NUM_THREADS=", os.Getenv("OMP_NUM_THREADS"))
}

// A program is where its place says before its first instruction, so all of its threads are; one without a place is not where others are.
func TestStart_ProgramsAreAtTheirPlaces(t *testing.T) {
	all, err := place.Available()
	if err != nil {
		t.Fatal(err)
	}
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := newRuntime(t, Options{})
	last := all[len(all)-1:].String()
	for _, c := range []struct {
		at   place.Place
		want string
	}{
		{place.Place{Cores: last, Nice: 19, Threads: 3}, fmt.Sprintf("cores %s, nice 19, OMP_NUM_THREADS=3", last)},
		{place.Place{}, fmt.Sprintf("cores %v, nice %d, OMP_NUM_THREADS=", all, 20-own)},
		{place.Place{Cores: "1023"}, fmt.Sprintf("cores %v, nice %d, OMP_NUM_THREADS=", all, 20-own)}, // a run is refused before
	} {
		p := self(t, "place")
		p.Place = c.at
		x := started(t, r, p)
		if got := x.Description.SDK; got != c.want {
			t.Errorf("at %+v it is at %s, want %s", c.at, got, c.want)
		}
		if err := x.Stop(r.Grace()); err != nil {
			t.Error(err)
		}
	}
}

// A priority that may not be given is an error of the start, and not a program that runs at another one.
func TestForker_SaysWhyAPriorityCannotBe(t *testing.T) {
	f := newForkers()
	defer f.stop()
	f.list[-7] = &forker{jobs: make(chan func()), ended: make(chan struct{})}
	go func(one *forker) {
		defer close(one.ended)
		one.err = unix.EACCES
		for job := range one.jobs {
			job()
		}
	}(f.list[-7])
	if err := f.start(nil, place.Place{Nice: -7}); !errors.Is(err, unix.EACCES) {
		t.Errorf("the start says %v", err)
	}
}
