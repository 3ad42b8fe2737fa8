package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
)

// top is the screen of rlhost top.
type top struct {
	job    watched
	every  time.Duration
	status *control.StatusReply // newest; nil until it has come
	at     time.Time            // when it came
	ended  string               // how the job has ended, once it has
	note   string               // what the last action came to

	returns, speeds []float64 // at each look, the newest last
	log             []string  // newest lines

	pane          pane
	first         int // line of the pane that is shown first; in the log counted from its end
	width, height int
}

// pane is what the lower part of the screen shows.
type pane int

const (
	paneComponents pane = iota
	paneWires
	paneLog
	panes
)

const (
	// kept is how many looks and lines of the log are kept: more than terminals are wide and high.
	kept = 1024
	// keys is the last line.
	keys = "tab components/wires/log   ↑↓ move   p pause   c checkpoint   q end"
)

// Init looks for the first time.
func (t *top) Init() tea.Cmd { return t.job.look(0) }

// Update takes a key, or what a command has come to.
func (t *top) Update(m tea.Msg) (tea.Model, tea.Cmd) {
	switch m := m.(type) {
	case tea.WindowSizeMsg:
		t.width, t.height = m.Width, m.Height
	case tea.KeyPressMsg:
		return t, t.press(m.String())
	case looked:
		return t, t.looked(m)
	case logged:
		t.log = last(append(t.log, strings.TrimSuffix(string(m), "\n")))
	case did:
		t.note = string(m)
	}
	return t, nil
}

// press does what a key means.
func (t *top) press(key string) tea.Cmd {
	page := max(t.height/2, 1)
	switch key {
	case "q", "ctrl+c", "esc":
		return tea.Quit
	case "tab":
		t.pane, t.first = (t.pane+1)%panes, 0
	case "shift+tab":
		t.pane, t.first = (t.pane+panes-1)%panes, 0
	case "up", "k":
		t.move(-1)
	case "down", "j":
		t.move(1)
	case "pgup":
		t.move(-page)
	case "pgdown", "space":
		t.move(page)
	case "p":
		if t.status != nil && t.ended == "" {
			t.note = "pausing…"
			return t.job.pause(t.status.State == control.Paused)
		}
	case "c":
		if t.ended == "" {
			t.note = "saving…"
			return t.job.checkpoint()
		}
	}
	return nil
}

// move moves the pane by lines. The log moves the other way: its newest line is the last.
func (t *top) move(by int) {
	if t.pane == paneLog {
		by = -by
	}
	t.first = min(max(t.first+by, 0), max(len(t.lines())-1, 0))
}

// looked takes the newest state, and looks again.
func (t *top) looked(m looked) tea.Cmd {
	if m.err != nil {
		t.ended = t.job.ended()
		return nil
	}
	now := time.Now()
	if t.status != nil {
		made := float64(m.status.Steps.Made) - float64(t.status.Steps.Made)
		t.speeds = last(append(t.speeds, made/now.Sub(t.at).Seconds()))
	}
	mean := math.NaN()
	if m.status.MeanReturn != nil {
		mean = *m.status.MeanReturn
	}
	t.returns = last(append(t.returns, mean))
	t.status, t.at = m.status, now
	return t.job.look(t.every)
}

// last returns the newest elements.
func last[T any](list []T) []T {
	if len(list) < 2*kept {
		return list
	}
	return append(list[:0:0], list[len(list)-kept:]...)
}

// View draws the screen: no line is wider than it, and there are no more lines than it has.
func (t *top) View() tea.View {
	if t.status == nil || t.width == 0 {
		return screenOf("")
	}
	head := []string{bold(t.cut(text.Head(t.status)))}
	head = append(head, t.curve("return", t.returns), t.curve("env steps/s", t.speeds))
	for line := range strings.Lines(text.State(t.status)) {
		if line = t.cut(line); strings.HasPrefix(line, "cause: ") {
			line = bold(line)
		}
		head = append(head, line)
	}
	foot := []string{t.cut(t.note), reversed(t.cut(keys))}
	if t.ended != "" {
		foot[0] = bold(t.cut(t.ended))
	}
	room := max(t.height-len(head)-len(foot), 0)
	rows := t.window(room)
	for len(rows) < room {
		rows = append(rows, "")
	}
	all := append(append(head, rows...), foot...)
	return screenOf(strings.Join(all[:min(len(all), t.height)], "\n"))
}

func screenOf(content string) tea.View {
	v := tea.NewView(content)
	v.AltScreen = true
	return v
}

// window returns the lines of the pane that there is room for. The titles of a table stay.
func (t *top) window(room int) []string {
	lines := t.lines()
	if room == 0 || len(lines) == 0 {
		return nil
	}
	if t.pane == paneLog {
		end := max(len(lines)-t.first, 1)
		return lines[max(end-room, 0):end]
	}
	title, rest := lines[:1], lines[1:]
	from := min(t.first, max(len(rest)-1, 0))
	return append(title[:1:1], rest[from:min(from+room-1, len(rest))]...)
}

// lines returns all lines of the pane.
func (t *top) lines() []string {
	var content string
	switch t.pane {
	case paneComponents:
		content = text.Components(t.status.Components)
	case paneWires:
		content = text.Wires(t.status.Wires)
	case paneLog:
		content = strings.Join(t.log, "\n")
	}
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	for i, line := range lines {
		lines[i] = t.cut(line)
	}
	return lines
}

// cut makes a line of a text that may have anything in it, at most as wide as the screen.
func (t *top) cut(line string) string {
	return ansi.Truncate(strings.ReplaceAll(strings.TrimRight(printable(line), "\n"), "\n", " "), t.width, "…")
}

// curve is a line with the newest of the numbers, and a bar for each before.
func (t *top) curve(name string, of []float64) string {
	newest := "–"
	if n := len(of); n > 0 && !math.IsNaN(of[n-1]) {
		newest = ansi.Truncate(text.Short(of[n-1]), 8, "…")
	}
	label := fmt.Sprintf("%-12s%8s  ", name, newest)
	return t.cut(label + bars(of, t.width-len([]rune(label))))
}

// bars has a bar for each of the newest numbers, from the smallest to the largest of them. One that is not finite has none.
func bars(of []float64, width int) string {
	of = of[max(len(of)-max(width, 0), 0):]
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range of {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			low, high = min(low, x), max(high, x)
		}
	}
	var b strings.Builder
	for _, x := range of {
		switch share := (x/2 - low/2) / (high/2 - low/2); {
		case math.IsNaN(x) || math.IsInf(x, 0):
			b.WriteByte(' ')
		case high > low:
			b.WriteRune([]rune("▁▂▃▄▅▆▇█")[int(share*7.999)])
		default:
			b.WriteRune('▁')
		}
	}
	return b.String()
}

func bold(s string) string     { return "\x1b[1m" + s + "\x1b[m" }
func reversed(s string) string { return "\x1b[7m" + s + "\x1b[m" }
