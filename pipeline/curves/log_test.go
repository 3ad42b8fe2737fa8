package curves

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func all(string) bool { return true }

// logOf returns a log that has read a text.
func logOf(text string, wanted func(string) bool) *Log {
	l := NewLog("", wanted)
	if err := l.next(text); err != nil {
		panic(err) // of a text in memory
	}
	return l
}

// next reads what of a text is new, as Read does of a file.
func (l *Log) next(text string) error {
	return l.readFrom(bufio.NewReaderSize(io.NewSectionReader(strings.NewReader(text), l.at, maxAtOnce), maxLine))
}

func TestLog_TakesNumbersOfAllSizes(t *testing.T) {
	l := logOf(`{"global_step":0,"r":0,"perf/wall_seconds":-1}
{"global_step":1,"r":-0.0}
{"global_step":2,"r":1e308}
{"global_step":3,"r":-1e308}
{"global_step":4,"r":NaN}
{"global_step":5,"r":null}
{"global_step":6,"r":-3e299}
{"global_step":1e308,"r":7}
{"global_step":7,"r":5e-324}
{"global_step":8,"r":1e999}
{"global_step":-9,"r":"text"}
`, all)
	if c := l.Curve("r", EnvSteps); !slices.Equal(c.X, []float64{0, 1, 6, 7}) || !slices.Equal(c.Y, []float64{0, 0, -3e299, 5e-324}) {
		t.Errorf("%+v", c)
	}
	if l.Unreadable() != 2 { // NaN and the text
		t.Errorf("%d lines are unreadable, want 2", l.Unreadable())
	}
	if c := l.Curve("r", Seconds); !slices.Equal(c.X, []float64{-1}) {
		t.Errorf("over seconds %+v", c)
	}
	if v, ok := l.Last("r"); v != 5e-324 || !ok {
		t.Errorf("the last is %g, %t", v, ok)
	}
	if c := l.Curve("nothing", EnvSteps); len(c.X) != 0 {
		t.Errorf("a metric that no line has: %+v", c)
	}
}

func TestLog_ReadsAFileAsItGrowsAndAnewWhenItIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, MetricsFile)
	l := NewLog(dir, func(name string) bool { return name == "r" })
	step := func(content string, grown bool, want ...float64) {
		t.Helper()
		if content != "" {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := l.Read(); got != grown || err != nil {
			t.Errorf("grown %t, %v; want %t", got, err, grown)
		}
		if c := l.Curve("r", EnvSteps); !slices.Equal(c.Y, want) {
			t.Errorf("%v, want %v", c.Y, want)
		}
	}
	step("", false)
	first := "{\"global_step\":1,\"r\":10}\n{\"global_step\":2,\"r\":20,\"s\":1}\n"
	step(first+"{\"global_step\":3,\"r\":3", true, 10, 20)
	step("", false, 10, 20)
	step(first+"{\"global_step\":3,\"r\":30}\n", true, 10, 20, 30)
	step("{\"global_step\":1,\"r\":11}\n", true, 11)
	if l.Curve("s", EnvSteps).X != nil || !slices.Equal(l.Names(), []string{"global_step", "r"}) {
		t.Errorf("names %v", l.Names())
	}
	l.Want(all)
	step("", true, 11)
}

func TestLog_DropsWhatWasAbandonedAndKeepsABound(t *testing.T) {
	l := logOf("{\"global_step\":1,\"r\":1}\n{\"global_step\":5,\"r\":5}\n{\"global_step\":3,\"r\":3}\n", all)
	if c := l.Curve("r", EnvSteps); !slices.Equal(c.X, []float64{1, 3}) {
		t.Errorf("%+v", c)
	}
	var text bytes.Buffer
	for i := range maxKept + maxKept/2 {
		fmt.Fprintf(&text, "{\"global_step\":%d,\"r\":%d}\n", i, -i)
	}
	l = logOf(text.String(), all)
	c := l.Curve("r", EnvSteps)
	if n := len(c.X); n != l.Lines() || n >= maxKept || n < maxKept/2 || !slices.IsSorted(c.X) || c.Y[n-1] != -c.X[n-1] || c.X[n-1] != maxKept+maxKept/2-1 {
		t.Errorf("%d points of %d lines, the last at %g", n, l.Lines(), c.X[n-1])
	}
	text.Reset()
	for i := range 2 * maxNames {
		fmt.Fprintf(&text, "{\"global_step\":%d,\"m%d\":1}\n", i, i)
	}
	if l = logOf(text.String(), all); len(l.Names()) != maxNames {
		t.Errorf("%d names", len(l.Names()))
	}
	if l = logOf(strings.Repeat("x", maxLine+5)+"\n{\"global_step\":1,\"r\":1}\n", all); l.Unreadable() != 1 || l.Lines() != 1 {
		t.Errorf("behind a line that is too long: %d unreadable, %d kept", l.Unreadable(), l.Lines())
	}
}

func TestLog_FindsAMetricAlongAnother(t *testing.T) {
	l := logOf(`{"global_step":1,"eval/env_steps":0,"eval/return":1}
{"global_step":2,"eval/env_steps":0,"eval/return":2}
{"global_step":3,"eval/env_steps":2}
{"global_step":4,"eval/env_steps":3,"eval/return":4}
`, all)
	c := l.Along("eval/return", "eval/env_steps")
	if !slices.Equal(c.X, []float64{0, 3}) || !slices.Equal(c.Y, []float64{2, 4}) {
		t.Errorf("%+v", c)
	}
	if p := c.Part(-5, 1.5); !slices.Equal(p.X, []float64{0, 1.5}) || !slices.Equal(p.Y, []float64{2, 3}) {
		t.Errorf("a part %+v", p)
	}
	if p := c.Part(4, 5); p.X != nil {
		t.Errorf("beyond its end %+v", p)
	}
}

// FuzzLog: a log of any bytes is read within bounds, the same in one piece as in two, and all that is drawn of it is finite.
func FuzzLog(f *testing.F) {
	f.Add("{\"global_step\":1,\"r\":1e308}\n{\"global_step\":2,\"r\":-1e308,\"perf/wall_seconds\":0}\n", uint16(9))
	f.Add("{\"r\":NaN,\"global_step\":-1}\n{\"global_step\":0,\"r\":0}\n{\"global_step\":null,\"r\":-5}\n", uint16(30))
	f.Add("{\"global_step\":3,\"r\":1,\"r\":2}\n{ \"r\" : 3, \"global_step\": 2 }\n{\"global_step\":4,\"\\u0072\":1e300}\n{}\n\n[]\n", uint16(1))
	f.Add("{\"global_step\":0x1p5,\"r\":1_0}\n{\"global_step\":9,\"r\":-1e300}\n", uint16(20))
	f.Fuzz(func(t *testing.T, text string, cut uint16) {
		whole, parts := logOf(text, all), NewLog("", all)
		for _, until := range []int{min(int(cut), len(text)), len(text)} {
			if err := parts.next(text[:until]); err != nil {
				t.Fatal(err)
			}
		}
		if whole.Lines() != parts.Lines() || whole.Unreadable() != parts.Unreadable() || !slices.Equal(whole.Names(), parts.Names()) {
			t.Fatalf("in one piece %d lines, %d unreadable, %q; in two %d, %d, %q", whole.Lines(), whole.Unreadable(), whole.Names(), parts.Lines(), parts.Unreadable(), parts.Names())
		}
		for _, name := range whole.Names() {
			for _, axis := range []Axis{EnvSteps, Seconds} {
				c, again := whole.Curve(name, axis), parts.Curve(name, axis)
				if !slices.Equal(c.X, again.X) || !slices.Equal(c.Y, again.Y) {
					t.Fatalf("%q in one piece %v, in two %v", name, c, again)
				}
				drawn(t, &c)
			}
			along := whole.Along(name, string(EnvSteps))
			drawn(t, &along)
		}
	})
}

// drawn checks that a curve ascends, and that what is drawn of it is finite.
func drawn(t *testing.T, c *Curve) {
	t.Helper()
	if len(c.X) != len(c.Y) {
		t.Fatalf("%d places and %d values", len(c.X), len(c.Y))
	}
	for i := range c.X {
		if i > 0 && c.X[i] <= c.X[i-1] || math.Abs(c.X[i]) > mostDrawn {
			t.Fatalf("place %d of %v", i, c.X)
		}
	}
	if len(c.X) == 0 {
		return
	}
	part := c.Part(c.X[0]/2, c.X[len(c.X)-1]/2)
	for _, v := range slices.Concat(c.Y, part.Y, Over([]Curve{*c}, 5).Mean) {
		if math.IsNaN(v) || math.Abs(v) > mostDrawn {
			t.Fatalf("%g is drawn of %v", v, c)
		}
	}
	Sparkline(c.Y, 10)
}
