package main

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/rlhost/rlhost/pipeline/pictures"
	"github.com/rlhost/rlhost/pipeline/play"
)

// The smallest terminal that a game is shown in.
const (
	leastColumns = 20
	leastRows    = 6
)

// textForm is the form of pictures that are text.
const textForm pictures.Form = "text"

// playScreen is the screen of play and watch: a picture, and two lines below it.
type playScreen struct {
	what string
	*play.Show
	film *film

	form    pictures.Form
	next    time.Time // picture
	err     error
	painter pictures.Painter

	width, height int
	fresh         int // how many more pictures are painted whole, because the screen has been cleared meanwhile
	picture       []byte
	text          string
}

// ticked says that it is time for the next picture.
type ticked time.Time

// slowest and fastest are how many pictures are painted a second.
const (
	slowest = 20
	fastest = 60
)

// lag is how late a picture may be before the time of the next ones moves.
const lag = 250 * time.Millisecond

// tick waits for the next picture. What the last one took is not added.
func (m *playScreen) tick() tea.Cmd {
	each, now := time.Duration(float64(time.Second)/min(max(m.Rate, slowest), fastest)), time.Now()
	if m.next = m.next.Add(each); now.Sub(m.next) > lag {
		m.next = now
	}
	return tea.Tick(max(m.next.Sub(now), 0), func(t time.Time) tea.Msg { return ticked(t) })
}

// Init adds the first picture to the film, and begins.
func (m *playScreen) Init() tea.Cmd {
	m.painter.Form = m.form
	if m.err = m.film.add(); m.err != nil {
		return tea.Quit
	}
	return m.tick()
}

// Update takes a key, or makes the steps that are due and paints.
func (m *playScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.Changed, m.fresh = true, 3
	case tea.KeyboardEnhancementsMsg:
		m.Tells = msg.SupportsEventTypes()
	case tea.KeyReleaseMsg:
		m.Release(msg.String())
	case tea.KeyPressMsg:
		m.err = m.Press(msg.String(), msg.IsRepeat, time.Now())
		if m.err != nil || m.ends(msg.String()) {
			return m, tea.Quit
		}
	case ticked:
		if m.err = m.CatchUp(time.Time(msg)); m.err == nil {
			m.err = m.draw()
		}
		if m.err != nil || m.Over() {
			return m, tea.Quit
		}
		// One after the other: pictures that tell of changes alone must come in their order.
		return m, tea.Sequence(m.paint(), m.tick())
	}
	return m, nil
}

func (m *playScreen) ends(key string) bool { return key == "q" || key == "ctrl+c" || key == "esc" }

// area is the part of the screen for the picture.
func (m *playScreen) area() pictures.Area { return pictures.Area{Columns: m.width, Rows: m.height - 2} }

// small reports whether the screen is too small for a game.
func (m *playScreen) small() bool { return m.width < leastColumns || m.height < leastRows }

// draw asks the environment for a picture where there is a new one.
func (m *playScreen) draw() (err error) {
	if !m.Changed || m.small() {
		return nil
	}
	m.Changed = false
	if m.form == textForm {
		m.text, err = m.Game.Text()
		return err
	}
	m.picture, err = m.Game.Colour(m.picture)
	return err
}

// paint sends the picture to the terminal, beside the lines that View has.
func (m *playScreen) paint() tea.Cmd {
	if m.form == textForm || m.small() || m.picture == nil {
		return nil
	}
	if m.fresh > 0 {
		m.painter.Forget()
		m.fresh--
	}
	r := m.Game.Spec().Render
	painted := m.painter.Paint(nil, pictures.Picture{RGB: m.picture, Width: r.Width, Height: r.Height}, m.area())
	if len(painted) == 0 {
		return nil
	}
	// The cursor is kept for who writes the lines, and a terminal that can shows all at once.
	return tea.Raw("\x1b[?2026h\x1b7" + string(painted) + "\x1b8\x1b[?2026l")
}

// View has the picture as text, or room for it, and the lines below.
func (m *playScreen) View() tea.View {
	if m.width == 0 {
		return screenOf("")
	}
	if m.small() {
		return screenOf(ansi.Truncate(fmt.Sprintf("%d × %d wanted", leastColumns, leastRows), m.width, ""))
	}
	rows := make([]string, m.height-2, m.height)
	if m.form == textForm {
		m.textRows(rows)
	}
	v := screenOf(strings.Join(append(rows, m.line(m.state()), reversed(m.line(m.legend()))), "\n"))
	v.KeyboardEnhancements.ReportEventTypes = true
	return v
}

// textRows writes the picture into the middle of the rows.
func (m *playScreen) textRows(rows []string) {
	lines := strings.Split(strings.TrimRight(printable(m.text), "\n"), "\n")
	lines = lines[:min(len(lines), len(rows))]
	wide := 0
	for _, line := range lines {
		wide = max(wide, ansi.StringWidth(line))
	}
	left := strings.Repeat(" ", max(m.width-wide, 0)/2)
	for i, line := range lines {
		rows[(len(rows)-len(lines))/2+i] = m.line(left + line)
	}
}

func (m *playScreen) line(s string) string { return ansi.Truncate(s, m.width, "…") }

// state says what happens.
func (m *playScreen) state() string {
	g := m.Game
	state := fmt.Sprintf("%s  step %d  return %.6g  reward %.4g  episode %d  %s  %.4g/s", g.By, g.Steps(), g.Return, g.Reward, g.Episode, printable(m.what), m.Rate)
	switch {
	case m.Note != "":
		return bold(printable(m.Note)) + "  " + state
	case g.Over:
		return bold(g.Ended) + "  " + state
	case m.Paused:
		return bold("paused") + "  " + state
	}
	return state
}

// legend names the keys.
func (m *playScreen) legend() string {
	return m.Keys.String() + "  tab " + inTurn(m.Who()) + "  p pause  n step  b back  r next  +- speed  q end"
}

func inTurn(list []play.By) string {
	var names []string
	for _, by := range list {
		names = append(names, string(by))
	}
	return strings.Join(names, "/")
}
