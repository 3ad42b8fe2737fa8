package wrap_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/plugins/plugintest"
)

// Each wrapper finds its own statistics among other wrappers', and invalid numbers are left out.
func TestS29_StatisticsFindTheirWrapper(t *testing.T) {
	s := plugintest.Script{Length: func(int, int) int { return 4 }, Autoreset: hostabi.SameStep, Picture: true, Reward: func(at plugintest.At) float32 { return float32(1 + at.Step) }}
	norm := func(gamma float64) env.Wrapper {
		return env.Wrapper{"reward_normalize": map[string]any{"gamma": gamma}}
	}
	clip, resize := env.Wrapper{"reward_clip": 9.0}, env.Wrapper{"resize": []any{int64(1), int64(2)}}
	lasting := func(list ...env.Wrapper) env.Lasting {
		d := driven(t, made(t, s, list...), 2, s.Autoreset)
		lengths(t, d, 7)
		return d.Env.(env.Lasting)
	}
	const record = 8 + 32
	from := lasting(norm(0.5), resize, clip, norm(0.9))
	kept := from.SaveLasting(1, nil)
	if len(kept) != 2*record {
		t.Fatalf("%d bytes outlive an episode, want %d", len(kept), 2*record)
	}
	sumless := func(b []byte) []byte { // the discounted return of the episode does not last
		b = bytes.Clone(b)
		for at := 0; at < len(b); at += record {
			clear(b[at+8:][:8])
		}
		return b
	}
	for name, c := range map[string]struct {
		list []env.Wrapper
		want []byte
	}{
		"the same":       {[]env.Wrapper{norm(0.5), resize, clip, norm(0.9)}, kept},
		"other order":    {[]env.Wrapper{clip, norm(0.9), resize}, kept[record:]},
		"the first":      {[]env.Wrapper{resize, norm(0.5)}, kept[:record]},
		"without any":    {[]env.Wrapper{resize, clip}, nil},
		"twice the last": {[]env.Wrapper{norm(0.9), clip}, kept[record:]},
	} {
		to := lasting(c.list...)
		if to.LoadLasting(0, kept); !bytes.Equal(to.SaveLasting(0, nil), sumless(c.want)) {
			t.Errorf("%s: %x was taken, want %x", name, to.SaveLasting(0, nil), sumless(c.want))
		}
	}
	another := lasting(norm(0.7))
	if was := another.SaveLasting(0, nil); !bytes.Equal(another.LoadLasting(0, kept), kept) || !bytes.Equal(another.SaveLasting(0, nil), was) {
		t.Error("statistics of another wrapper are taken")
	}
	for i, bad := range []float64{math.NaN(), math.Inf(1), -1} {
		to := lasting(norm(0.9))
		was := sumless(to.SaveLasting(0, nil))
		damaged := bytes.Clone(kept[record:])
		binary.LittleEndian.PutUint64(damaged[8+8*(1+min(i, 1)):], math.Float64bits(bad)) // the mean or the variance
		if i == 2 {
			binary.LittleEndian.PutUint64(damaged[8+24:], math.Float64bits(bad))
		}
		if to.LoadLasting(0, damaged); !bytes.Equal(to.SaveLasting(0, nil), was) {
			t.Errorf("statistics with %v are taken", bad)
		}
	}
	to := lasting(norm(0.9))
	for n := range record {
		to.LoadLasting(0, kept[record:][:n]) // which ends too early
	}
}
