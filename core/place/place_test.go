package place

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseCores_ReadsWhatItWrites(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "0-3": "0-3", "3,1,2": "1-3", "0-1,1-2,6": "0-2,6", " 0 , 4": "0,4", "1023": "1023"} {
		got, err := ParseCores(text)
		if err != nil || got.String() != want {
			t.Errorf("%q is %v, %v; want %s", text, got, err, want)
		}
	}
}

func TestParseCores_RejectsOthers(t *testing.T) {
	for text, why := range map[string]string{
		"": "empty", ",": "neither", "0,": "neither", "a": "neither", "-1": "neither", "1-": "neither", "0-1-2": "neither", "1.5": "neither",
		"3-1": "ends before", "0-1024": "highest", "99999999999999999999": "neither",
	} {
		if got, err := ParseCores(text); !errors.Is(err, ErrCores) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q is %v, %v; want %q", text, got, err, why)
		}
	}
}

func FuzzParseCores(f *testing.F) {
	for _, text := range []string{"0-3,6", "3-1", "", "0-99999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cores, err := ParseCores(text)
		if err != nil {
			return
		}
		again, err := ParseCores(cores.String())
		if err != nil || !slices.Equal(cores, again) || !slices.IsSorted(cores) || len(cores) == 0 || len(cores) > MaxCores {
			t.Errorf("%q is %v, written %s and read as %v, %v", text, []int(cores), cores, again, err)
		}
	})
}

func TestPlace_TakesWhatItLeavesOpenFromAnother(t *testing.T) {
	got := Place{Cores: "0"}.Or(Place{Cores: "1", Nice: 5}).Or(Place{Nice: 7, Threads: 2})
	if want := (Place{"0", 5, 2}); got != want || got.String() != "cores 0, nice 5, 2 threads" {
		t.Errorf("%+v (%v), want %+v", got, got, want)
	}
	if none := (Place{}); none.String() != "" || len(none.Env()) != 0 {
		t.Errorf("anywhere is %q with %q", none, none.Env())
	}
	if env := got.Env(); !slices.Contains(env, "OMP_NUM_THREADS=2") || !slices.Contains(env, "GOMAXPROCS=2") {
		t.Errorf("2 threads are %q", env)
	}
}
