package main

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
)

func TestTop_ShowsAJobUntilAKeyOrTheJobEndsIt(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("pole.toml", plain+"[component.runner]\nlog = [\"prometheus\"]\nlisten = \"127.0.0.1:0\"\n")
	w.fails(exitUsage, []string{"top"}, "top needs a terminal", "rlhost status")
	w.fails(exitUsage, []string{"top", "--every", "1ms"}, "--every is 1ms, want 50ms or more")
	j := w.host("pole.toml", "--set", "run.stop={}")
	x := onTerminal(t, 80, []string{"TERM=xterm-256color"}, w.dir, "top", "--every", "50ms")
	press := func(key, want string) {
		t.Helper()
		if _, err := x.master.WriteString(key); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, fmt.Sprintf("%q shows %q", key, want), func() bool { return strings.Contains(x.output(), want) })
	}
	press("", "COMPONENT")
	press("\t", "rollout.trajectories → batcher.on_trajectories")
	press("c", "exactly")
	press("p", "cause: paused by request")
	press("p", "unpaused")
	press("\t", "runner: Prometheus finds the metrics")
	j.kill()
	testkit.Until(t, "it says that the run is over", func() bool { return strings.Contains(x.output(), "cartpole/0001 was killed") })
	if _, err := x.master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := x.cmd.Wait(); err != nil {
		t.Errorf("top ends with %v", err)
	}
}

// No screen is wider or longer than the terminal, whatever a job is called and however it is.
func TestTop_FitsTheTerminal(t *testing.T) {
	s := &control.StatusReply{
		Run: "a\x1b[2Jb\nc/0001", State: control.Stalled, MeanReturn: new(-math.MaxFloat64), Cause: strings.Repeat("wide ", 99),
		Steps: control.StepCounts{Made: math.MaxUint64, Reasons: map[string]uint64{"\x07": 1}},
	}
	for i := range 1000 {
		s.Components = append(s.Components, control.ComponentStatus{Name: fmt.Sprintf("名前%d\x1b]0;x\a", i), Note: "n\r\n", Rate: math.NaN()})
		s.Wires = append(s.Wires, control.WireStatus{Wire: strings.Repeat("→", 200)})
	}
	escapes := regexp.MustCompile("\x1b\\[[17]?m")
	for _, size := range [][2]int{{80, 24}, {1, 1}, {20, 3}, {300, 100}, {0, 0}, {40, 8}} {
		m := &top{every: time.Second}
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, returns := range []float64{math.NaN(), math.Inf(1), -math.MaxFloat64, math.MaxFloat64, 0} {
			s.MeanReturn = &returns
			m.Update(looked{status: s})
		}
		for range 3000 {
			m.Update(logged("\x1b[31mred\x1b[m " + strings.Repeat("x", 100) + "\n"))
		}
		for _, key := range []rune{tea.KeyTab, tea.KeyDown, tea.KeyPgDown, tea.KeyPgDown, tea.KeyTab, tea.KeyPgDown, tea.KeyUp, tea.KeyTab, tea.KeyPgUp, tea.KeyPgUp} {
			m.Update(tea.KeyPressMsg{Code: key})
			content := escapes.ReplaceAllString(m.View().Content, "")
			lines := strings.Split(content, "\n")
			if len(lines) > max(size[1], 1) {
				t.Errorf("%v: %d lines", size, len(lines))
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > size[0] || strings.ContainsAny(line, "\x1b\a\r") {
					t.Errorf("%v: %q", size, line)
				}
			}
		}
		if len(m.log) > 2*kept || len(m.returns) > 2*kept {
			t.Errorf("%d lines and %d returns are kept", len(m.log), len(m.returns))
		}
	}
}

func TestBars_StandForFiniteNumbers(t *testing.T) {
	for want, of := range map[string][]float64{
		"":      nil,
		"▁":     {5},
		"▁█":    {1, 2},
		"▁▄█ ▁": {0, 0.5, 1, math.NaN(), 0},
		" ▁ █":  {math.Inf(-1), -math.MaxFloat64, math.Inf(1), math.MaxFloat64},
	} {
		if got := bars(of, 9); got != want {
			t.Errorf("bars(%v) = %q, want %q", of, got, want)
		}
	}
	if got := bars([]float64{9, 1, 2}, 2); got != "▁█" {
		t.Errorf("the newest two of three are %q", got)
	}
	if got := bars([]float64{9, 1, 2}, -3); got != "" {
		t.Errorf("without room there is %q", got)
	}
}
