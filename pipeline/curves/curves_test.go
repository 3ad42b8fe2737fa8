package curves

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/files"
)

func TestRead_LeavesOutNullPoints(t *testing.T) {
	t.Parallel()
	c, unreadable, err := read(strings.NewReader(`{"global_step":1,"r":10}
{"global_step":2,"r":null}
{"global_step":3,"r":30}
{"global_step":5,"r":50}
{"global_step":3,"r":31}
not json
{"global_step":4,"other":1}
{"global_step":6,"r":6`), "r", EnvSteps)
	if err != nil || unreadable != 2 {
		t.Fatalf("%d unreadable, %v", unreadable, err)
	}
	if !slices.Equal(c.X, []float64{1, 3}) || !slices.Equal(c.Y, []float64{10, 31}) {
		t.Errorf("%+v", c)
	}
	_, _, err = read(strings.NewReader("{\"global_step\":1,\"charts/SPS\":2}\n"), "r", EnvSteps)
	if !errors.Is(err, ErrNoMetric) || !strings.Contains(err.Error(), "no such metric: r\n  help: the closest are charts/SPS, global_step; --metric list prints all") {
		t.Errorf("without the metric: %v", err)
	}
}

func TestOver_MeanAndIntervalWhereAllCurvesAre(t *testing.T) {
	t.Parallel()
	b := Over([]Curve{{X: []float64{0, 10}, Y: []float64{0, 10}}, {X: []float64{2, 4, 20}, Y: []float64{2, 8, 8}}}, 5)
	if !slices.Equal(b.X, []float64{2, 4, 6, 8, 10}) || !slices.Equal(b.Mean, []float64{2, 6, 7, 8, 9}) {
		t.Errorf("%+v", b)
	}
	const half = 12.7062 * 2 // t of one degree of freedom
	if math.Abs(b.Low[1]-6+half) > 1e-3 || math.Abs(b.High[1]-6-half) > 1e-3 || b.Low[0] != 2 || b.High[0] != 2 {
		t.Errorf("interval %v to %v", b.Low, b.High)
	}
	if apart := Over([]Curve{{X: []float64{0}, Y: []float64{0}}, {X: []float64{1}, Y: []float64{0}}}, 5); len(apart.X) != 0 {
		t.Errorf("curves that share nothing: %+v", apart)
	}
}

func TestSparkline_ShowsTheHighestOfEachPart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []float64
		width  int
		want   string
	}{
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 8, "▁▂▃▄▅▆▇█"},
		{[]float64{0, 7, 0, 0}, 2, "█▁"},
		{[]float64{3, math.NaN(), 3}, 8, "▁ ▁"},
		{nil, 8, ""},
	} {
		if got := Sparkline(c.values, c.width); got != c.want {
			t.Errorf("%v in %d: %q, want %q", c.values, c.width, got, c.want)
		}
	}
}

func TestDraw_WritesPictures(t *testing.T) {
	t.Parallel()
	lines := []Line{
		{"fast & <loose>", Over([]Curve{{X: []float64{0, 9}, Y: []float64{0, 400}}, {X: []float64{0, 9}, Y: []float64{100, 500}}}, 10)},
		{"one run", Over([]Curve{{X: []float64{0, 9}, Y: []float64{50, 60}}}, 10)},
	}
	for _, format := range Formats() {
		var out bytes.Buffer
		if err := Draw(&out, Picture{Format: format, Title: "cartpole", X: "env steps", Y: "return", Lines: lines}); err != nil {
			t.Fatal(err)
		}
		if format == "png" {
			if _, err := png.Decode(&out); err != nil {
				t.Error(err)
			}
			continue
		}
		text := out.String()
		if err := xml.Unmarshal(out.Bytes(), new(struct{})); err != nil || !strings.Contains(text, "fast &amp; &lt;loose&gt;") {
			t.Errorf("%v:\n%.2000s", err, text)
		}
	}
	if err := Draw(&bytes.Buffer{}, Picture{Format: "gif"}); err == nil {
		t.Error("a gif was drawn")
	}
}

// Whatever finite numbers a log of metrics has are drawn, or left out and counted, on paper as in a line of text.
func TestRead_NumbersOfAllSizesAreDrawn(t *testing.T) {
	t.Parallel()
	huge := []float64{1e308, -1e308, 1e300, -1e300, 1e17, 1e17, 0, 5e-324, -5e-324, 1e-310, 1e16 + 2, math.MaxFloat64}
	for i, y := range huge {
		for k, x := range huge {
			text := fmt.Sprintf("{\"global_step\":%g,\"r\":%g}\n{\"global_step\":%g,\"r\":%g}\n", x, y, huge[(k+i)%len(huge)], huge[(i+1)%len(huge)])
			c, _, err := read(strings.NewReader(text), "r", EnvSteps)
			Sparkline([]float64{y, huge[k], 3}, 40)
			if err != nil {
				continue
			}
			for _, v := range Over([]Curve{c, c}, 7).Mean {
				if math.IsInf(v, 0) || math.IsNaN(v) {
					t.Fatalf("%s: a mean of %v", text, v)
				}
			}
			if err := Draw(io.Discard, Picture{Format: "svg", Lines: []Line{{"a", Over([]Curve{c}, 7)}, {"b", Over([]Curve{c, c}, 7)}}}); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
	}
	if got := Sparkline([]float64{-1e308, 0, 1e308}, 3); got != "▁▅█" {
		t.Errorf("from -1e308 to 1e308: %q", got)
	}
}

// A file that is no log of metrics is refused at once: a pipe, a device, a file whose first line does not end.
func TestRead_RefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(path string) error{
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"line": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40))
		},
	} {
		dir := t.TempDir()
		if err := make(filepath.Join(dir, MetricsFile)); err != nil {
			t.Fatal(err)
		}
		_, _, err := Read(dir, "r", EnvSteps)
		if refused := errors.Is(err, files.ErrNotRegular); err == nil || refused != (name != "line") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
