package wrap_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// followed makes environments with one list of wrappers take some steps, and others with another list continue from there.
func followed(t *testing.T, s plugintest.Script, steps int, was, is []env.Wrapper) (*env.Driver, error) {
	t.Helper()
	p, next := made(t, s, was...), made(t, s, is...)
	if !env.Rewraps(next, p) {
		t.Fatalf("%v and %v are told apart by more than wrappers", was, is)
	}
	d := driven(t, p, 2, s.Autoreset)
	for range steps {
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
	}
	to := driven(t, next, 2, s.Autoreset)
	if err := to.Env.(env.Copier).CopyFrom(d.Env); err != nil {
		return nil, err
	}
	from, row := d.Acting()
	tr, own := to.Acting()
	tr.CopyObserved(own, from, row)
	return to, to.Bind()
}

// lengths returns after how many steps episodes of the first environment end.
func lengths(t *testing.T, d *env.Driver, steps int) (list []int) {
	t.Helper()
	age := 0
	for range steps {
		if _, err := d.Step(); err != nil {
			t.Fatal(err)
		}
		if age++; d.Terminated()[0]|d.Truncated()[0] != 0 {
			list, age = append(list, age), 0
		}
	}
	return list
}

// Wrappers in both lists continue in the running episodes; a different one starts from scratch, and the environment continues.
func TestWrapped_ADifferentWrapperStartsFromScratch(t *testing.T) {
	s := plugintest.Script{Length: func(int, int) int { return 20 }, Autoreset: hostabi.SameStep, Picture: true}
	scale, clip := env.Wrapper{"reward_scale": 2.0}, env.Wrapper{"reward_clip": 0.5}
	limit := func(n int) env.Wrapper { return env.Wrapper{"time_limit": n} }
	resize := env.Wrapper{"resize": []any{int64(1), int64(2)}}
	for name, c := range map[string]struct {
		was, is []env.Wrapper
		want    int // steps to the end of the running episode, of which 5 have been made
	}{
		"around a limit":        {[]env.Wrapper{limit(9), scale}, []env.Wrapper{limit(9), clip}, 4},
		"within a limit":        {[]env.Wrapper{scale, limit(9)}, []env.Wrapper{clip, limit(9)}, 4},
		"a limit":               {[]env.Wrapper{limit(9), scale}, []env.Wrapper{limit(7), scale}, 7},
		"a limit that was none": {[]env.Wrapper{scale, clip}, []env.Wrapper{limit(8), clip}, 8},
		"a limit no more":       {[]env.Wrapper{limit(9), clip}, []env.Wrapper{scale, clip}, 15},
		"beside pictures":       {[]env.Wrapper{limit(9), resize, scale}, []env.Wrapper{limit(9), resize, clip}, 4},
		"within pictures":       {[]env.Wrapper{limit(9), scale, resize}, []env.Wrapper{limit(9), clip, resize}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := followed(t, s, 5, c.was, c.is)
			if err != nil {
				t.Fatal(err)
			}
			if got := lengths(t, d, 16); len(got) == 0 || got[0] != c.want {
				t.Errorf("episodes end after %v steps, want the first after %d", got, c.want)
			}
		})
	}
}

// An episode that a limit has ended, and that continues in the environment for a step, ends there whatever the limit becomes.
func TestWrapped_ALimitFollowsOneThatHasJustEndedAnEpisode(t *testing.T) {
	s := plugintest.Script{Length: func(int, int) int { return 20 }, Autoreset: hostabi.NextStep}
	limit := func(n int) []env.Wrapper { return []env.Wrapper{{"time_limit": n}} }
	d, err := followed(t, s, 5, limit(5), limit(3))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Step(); err != nil {
		t.Fatal(err)
	}
	if step := d.Obs().Float32()[plugintest.ObsStep]; step != 0 {
		t.Errorf("behind the end the environment is at step %v of an episode, want a new one", step)
	}
	if _, err := followed(t, s, 5, limit(5), []env.Wrapper{{"reward_scale": 2.0}}); !errors.Is(err, env.ErrUnsupported) {
		t.Errorf("nothing resets the environment any more: %v", err)
	}
}

// Plugins that differ in more than wrappers one for one are not taken for such.
func TestRewraps_TellsApartWhatCannotGoOn(t *testing.T) {
	limit, resize := env.Wrapper{"time_limit": 5}, env.Wrapper{"resize": []any{int64(1), int64(2)}}
	p := made(t, plugintest.Script{Picture: true}, limit, resize)
	for name, other := range map[string]env.Plugin{
		"one less":           made(t, plugintest.Script{Picture: true}, limit),
		"none":               plugintest.New(plugintest.Script{Picture: true}),
		"one more":           made(t, plugintest.Script{Picture: true}, limit, limit, resize),
		"another size":       made(t, plugintest.Script{Picture: true}, limit, env.Wrapper{"resize": []any{int64(1), int64(1)}}),
		"no picture":         made(t, plugintest.Script{Picture: true}, limit, limit),
		"other environments": made(t, plugintest.Script{Picture: true, Name: "other@1"}, limit, resize),
	} {
		if env.Rewraps(p, other) || env.Rewraps(other, p) {
			t.Errorf("%s: the plugins differ by wrappers alone", name)
		}
	}
	if !env.Rewraps(p, made(t, plugintest.Script{Picture: true}, env.Wrapper{"reward_scale": 2.0}, resize)) {
		t.Error("a limit that becomes a scale is more than another wrapper")
	}
}

// Between modules a batch that takes over continues as a copy would, within pictures too, and the other one starts from scratch.
func TestWrapped_TakingOverEqualsACopy(t *testing.T) {
	load := guests(t)
	for name, lists := range map[string][2][]env.Wrapper{
		"cartpole@1":         {{{"time_limit": 30}, {"reward_scale": 0.5}}, {{"time_limit": 30}, {"reward_clip": 1}}},
		"minatar-breakout@1": {{{"time_limit": 30}, {"resize": []any{int64(7), int64(12)}}, {"record_stats": "a"}}, {{"time_limit": 30}, {"resize": []any{int64(7), int64(12)}}, {"record_stats": "b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			batch := func(list []env.Wrapper) *env.Driver {
				p, err := load(t, name, list)
				if err != nil {
					t.Fatal(err)
				}
				return driven(t, p, 2, hostabi.SameStep)
			}
			run := func(goOn func(to, from env.Env) error) (seen []string) {
				d, to := batch(lists[0]), batch(lists[1])
				lengths(t, d, 5)
				if err := goOn(to.Env, d.Env); err != nil {
					t.Fatal(err)
				}
				from, row := d.Acting()
				tr, own := to.Acting()
				tr.CopyObserved(own, from, row)
				if err := to.Bind(); err != nil {
					t.Fatal(err)
				}
				for range 40 {
					if _, err := to.Step(); err != nil {
						t.Fatal(err)
					}
					seen = append(seen, string(to.Obs().Data)+string(to.Terminated())+string(to.Truncated()))
				}
				if err := errors.Join(d.Bind(), d.Reset(nil, []uint64{1, 2})); err != nil {
					t.Fatal(err)
				}
				lengths(t, d, 3)
				return seen
			}
			copied := run(func(to, from env.Env) error { return to.(env.Copier).CopyFrom(from) })
			taken := run(func(to, from env.Env) error { return to.(env.Successor).TakeOver(from) })
			if !slices.Equal(copied, taken) {
				t.Error("what was taken over goes on otherwise than a copy")
			}
		})
	}
}
