package main

import (
	"bytes"
	"fmt"
	"image/gif"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/pictures"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// A person watches, takes over, goes back and ends, and the film has all of it.
func TestPlay_InATerminal(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	x := onTerminal(t, 80, []string{"TERM=xterm-256color", "COLORTERM="}, w.dir, "watch", "minatar-breakout@1", "--show", "text", "--record", "film.gif")
	x.wait(`random  step \d`)
	x.press("p")
	x.wait(`paused`)
	x.press("\x1b[D") // left
	x.wait(`you  step`)
	x.press("\t\t")
	x.press("b")
	x.press("q")
	code, output := x.end()
	if code != 0 || !regexp.MustCompile(`film.gif has \d+ pictures`).MatchString(output) {
		t.Errorf("exit code %d: %q", code, output)
	}
	data, err := os.ReadFile(filepath.Join(w.dir, "film.gif"))
	if err != nil {
		t.Fatal(err)
	}
	if film, err := gif.DecodeAll(bytes.NewReader(data)); err != nil || len(film.Image) < 3 {
		t.Errorf("the film: %v", err)
	}
	w.write("keys.toml", strings.Replace(plain, "use = \"cartpole@1\"", "use = \"cartpole@1\"\nkeys = { x = 0, y = 1 }", 1))
	x = onTerminal(t, 80, []string{"TERM=xterm"}, w.dir, "play", "keys.toml", "--fps", "1")
	x.wait(`x=0 y=1  tab you/random`)
	x.press("q")
	if code, output := x.end(); code != 0 {
		t.Errorf("exit code %d: %q", code, output)
	}
	x = onTerminal(t, 80, []string{"TERM=xterm"}, w.dir, "play", "minatar-freeway@1", "--show", "text", "--fps", "1")
	x.wait(`down=2 up=1  tab you/random`) // as its author says
	x.press("q")
	if code, output := x.end(); code != 0 {
		t.Errorf("exit code %d: %q", code, output)
	}
	x = onTerminal(t, 10, []string{"TERM=xterm"}, w.dir, "play", "connectfour@1")
	if code, output := x.end(); code != exitUsage || !strings.Contains(output, "the terminal has 10 columns and 24 rows, want 20 and 6") {
		t.Errorf("exit code %d: %q", code, output)
	}
}

// A game of two in which the other plays at random: each key is a move, and colours are half blocks.
func TestPlay_AGameOfTwo(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	x := onTerminal(t, 80, []string{"TERM=xterm-256color", "COLORTERM=truecolor"}, w.dir, "play", "connectfour@1", "--seed", "2")
	x.wait(`you  step 0 `)
	x.press("3")
	x.wait(`38;2;242;209;60m`) // both have a piece
	x.wait(`38;2;224;58;58m`)
	x.press("q")
	if code, output := x.end(); code != 0 {
		t.Errorf("exit code %d: %q", code, output)
	}
}

// gameOf plays a built-in environment.
func gameOf(t *testing.T, use string) *play.Game {
	t.Helper()
	parts, engines := builtin.New(builtin.Options{})
	source := env.DefaultSource()
	source.Use = use
	plugin, err := parts.Load(t.Context(), "", graph.EnvTable{Source: source}, ".")
	if err != nil {
		t.Fatal(err)
	}
	g, err := play.New(plugin, play.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{g, plugin, engines} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return g
}

// No line is wider than the terminal, and there are no more than it has, whatever its size and form.
func TestPlay_FitsTheTerminal(t *testing.T) {
	g := gameOf(t, "cartpole@1")
	escapes := regexp.MustCompile("\x1b\\[[17]?m")
	for _, form := range []pictures.Form{textForm, pictures.Blocks, pictures.Sixel, pictures.Kitty} {
		m := &playScreen{what: strings.Repeat("名前\x1b]0;x\a", 40), Show: play.NewShow(g, play.DefaultKeys(g), 50), form: form}
		m.Init()
		now := time.Now()
		for _, size := range [][2]int{{80, 24}, {1, 1}, {20, 6}, {19, 30}, {300, 100}, {21, 7}} {
			m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			for range 3 {
				now = now.Add(20 * time.Millisecond)
				if m.Update(ticked(now)); m.err != nil {
					t.Fatal(m.err)
				}
			}
			lines := strings.Split(escapes.ReplaceAllString(m.View().Content, ""), "\n")
			if len(lines) > size[1] {
				t.Errorf("%s %v: %d lines", form, size, len(lines))
			}
			for _, line := range lines {
				if ansi.StringWidth(line) > size[0] || strings.ContainsAny(line, "\x1b\a\r") {
					t.Errorf("%s %v: %q", form, size, line)
				}
			}
		}
	}
}

// A live game takes as many steps as its rate says, forgets what a stopped terminal has missed, and lets go of a key after a while.
func TestPlay_KeepsTime(t *testing.T) {
	g := gameOf(t, "minatar-freeway@1")
	m := &playScreen{what: "freeway", Show: play.NewShow(g, play.Keys{"a": {1}, play.None: {0}}, 60), form: textForm}
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	now := time.Now()
	ticks := func(n int) {
		for range n {
			now = now.Add(time.Second / 60)
			m.Update(ticked(now))
		}
	}
	ticks(60)
	if made := g.Steps(); made < 59 || made > 61 {
		t.Errorf("a second has %d steps, want 60", made)
	}
	was := g.Steps()
	now = now.Add(time.Hour)
	ticks(1)
	if made := g.Steps() - was; made > 1 {
		t.Errorf("after an hour %d steps are made", made)
	}
	m.Update(tea.KeyPressMsg{Code: 'a', Text: "a"})
	if g.By != play.Person || m.Held() != "a" {
		t.Errorf("%s plays, and %q is held", g.By, m.Held())
	}
	_ = m.CatchUp(time.Now().Add(time.Second))
	if m.Held() != "" {
		t.Error("a key is held for ever")
	}
	m.Update(tea.KeyboardEnhancementsMsg{Flags: ansi.KittyReportEventTypes})
	m.Update(tea.KeyPressMsg{Code: 'a', Text: "a"})
	_ = m.CatchUp(time.Now().Add(time.Second))
	if m.Held() != "a" {
		t.Error("a key that the terminal has not let go is not held")
	}
	if m.Update(tea.KeyReleaseMsg{Code: 'a', Text: "a"}); m.Held() != "" {
		t.Error("a key that the terminal has let go is held")
	}
}

// After going back a game shows the same pictures as the first time.
func TestPlay_GoesBackToTheSamePictures(t *testing.T) {
	g := gameOf(t, "minatar-freeway@1")
	var seen []string
	for range 8 {
		picture, err := g.Colour(nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.Text()
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, fmt.Sprintf("%x%s", picture, text))
		if err := g.Step(); err != nil {
			t.Fatal(err)
		}
	}
	for back := 8; back > 0; back-- {
		if err := g.Back(1); err != nil {
			t.Fatal(err)
		}
		picture, err := g.Colour(nil)
		text, _ := g.Text()
		if got := fmt.Sprintf("%x%s", picture, text); err != nil || got != seen[back-1] {
			t.Errorf("%v: the picture of step %d differs", err, back-1)
		}
	}
}

func TestShownForm_SuitsTheTerminal(t *testing.T) {
	g := gameOf(t, "cartpole@1")
	for vars, want := range map[string]pictures.Form{
		"TERM=xterm-kitty": pictures.Kitty, "TERM_PROGRAM=WezTerm": pictures.Kitty, "TERM=foot": pictures.Sixel,
		"TERM=linux": textForm, "COLORTERM=truecolor": pictures.Blocks,
	} {
		key, value, _ := strings.Cut(vars, "=")
		got := shownForm("auto", g, func(k string) string { return map[string]string{key: value}[k] })
		if got != want {
			t.Errorf("%s shows %s, want %s", vars, got, want)
		}
	}
	if modes := g.Spec().Render.Modes; modes&hostabi.RenderText == 0 {
		t.Errorf("modes %v", modes)
	}
}
