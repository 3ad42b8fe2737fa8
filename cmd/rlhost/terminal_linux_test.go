package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/internal/testkit"
)

// screen is as much of a terminal as progress needs: lines that wrap, carriage returns, clearing to the end of a line, and
// going up to clear all from there. Other sequences may only set attributes.
type screen struct {
	width   int
	lines   [][]rune
	wrapped []bool // the line continues in the next one
	column  int
	up      int      // rows that the cursor was taken up
	odd     []string // sequences that it does not know
}

var sequence = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

func (s *screen) show(text string) {
	for len(text) > 0 {
		if found := sequence.FindStringSubmatch(text); found != nil {
			s.control(found[0], found[2])
			text = text[len(found[0]):]
			continue
		}
		r := []rune(text[:min(len(text), 4)])[0]
		text = text[len(string(r)):]
		s.put(r)
	}
}

func (s *screen) control(whole, final string) {
	row := len(s.lines) - 1
	switch {
	case final == "m":
	case final == "K" && whole == "\x1b[K":
		s.lines[row] = s.lines[row][:min(s.column, len(s.lines[row]))]
	case final == "A" && s.column == 0:
		s.up, _ = strconv.Atoi(strings.Trim(whole, "\x1b[A"))
	case whole == "\x1b[J" && s.up > 0 && s.up <= min(row, terminalRows-1):
		s.lines, s.wrapped = append(s.lines[:row-s.up], nil), append(s.wrapped[:row-s.up], false)
		s.up = 0
	default:
		s.odd = append(s.odd, fmt.Sprintf("%q", whole))
	}
}

func (s *screen) put(r rune) {
	switch {
	case r == '\r':
		s.column = 0
		return
	case r == '\n':
		s.feed(false)
		return
	case r < ' ' || r == 0x7f:
		s.odd = append(s.odd, fmt.Sprintf("%q", r))
		return
	case s.column == s.width:
		s.feed(true)
		s.column = 0
	}
	row := len(s.lines) - 1
	for len(s.lines[row]) <= s.column {
		s.lines[row] = append(s.lines[row], ' ')
	}
	s.lines[row][s.column] = r
	s.column++
}

func (s *screen) feed(wrap bool) {
	s.wrapped[len(s.wrapped)-1] = wrap
	s.lines, s.wrapped = append(s.lines, nil), append(s.wrapped, false)
}

// text returns the lines as they were before they wrapped.
func (s *screen) text() []string {
	var all []string
	line := ""
	for i := range s.lines {
		line += string(s.lines[i])
		if !s.wrapped[i] {
			all = append(all, line)
			line = ""
		}
	}
	if last := len(all) - 1; last >= 0 && all[last] == "" {
		all = all[:last]
	}
	return all
}

// terminal is a program on its own terminal.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu  sync.Mutex
	raw strings.Builder
	eof chan struct{}
}

// terminalRows is the height of every terminal.
const terminalRows = 24

// onTerminal starts rlhost on a new terminal of that width.
func onTerminal(t *testing.T, width uint16, env []string, dir string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: terminalRows, Col: width}); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	x := &terminal{t: t, master: master, cmd: exec.Command("rlhost", args...), eof: make(chan struct{})}
	x.cmd.Dir, x.cmd.Env = dir, append(os.Environ(), env...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(x.cmd.Start(), slave.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill()
		_ = master.Close()
	})
	go x.read()
	return x
}

// read collects the program's output until it has ended.
func (x *terminal) read() {
	defer close(x.eof)
	buf := make([]byte, 4096)
	for {
		n, err := x.master.Read(buf)
		x.mu.Lock()
		x.raw.Write(buf[:n])
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *terminal) output() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.raw.String()
}

// shown is a terminal that prints its screen.
type shown struct{ *terminal }

func (s shown) String() string { return fmt.Sprintf("%q", s.output()) }

// wait waits until the output matches.
func (x *terminal) wait(pattern string) {
	x.t.Helper()
	want := regexp.MustCompile(pattern)
	testkit.Until(x.t, "the terminal shows "+pattern, func() bool { return want.MatchString(x.output()) }, shown{x})
}

// press sends keys.
func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := io.WriteString(x.master, keys); err != nil {
		x.t.Fatal(err)
	}
}

// end waits for the program and returns its exit code and all that it wrote.
func (x *terminal) end() (code int, output string) {
	x.t.Helper()
	err := x.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		x.t.Fatal(err)
	}
	<-x.eof
	return x.cmd.ProcessState.ExitCode(), x.output()
}

// troubled is a folder with a pipeline whose environments trap now and then, and that only Ctrl-C ends.
func troubled(t *testing.T) string {
	t.Helper()
	w := newWorkshop(t)
	w.copy("faulty.wasm", faultyGuests+"/faulty.wasm")
	text := strings.NewReplacer(`"job"`, `"walk"`, `"./faulty.wasm"`, "\"./faulty.wasm\"\nargs = { fault = 1, env = 17, step = 5000 }",
		"envs = 16", "envs = 18\nmax_restarts = 1_000_000").Replace(jobOf("walk", "faulty.wasm"))
	w.write("pipeline.toml", text+"minibatch = 1152\n[component.batcher]\ndataset_rows = 1152\n[component.runner]\nevery = \"20ms\"\n")
	return w.dir
}

// Patterns of whole lines.
const (
	startLine = `^[0-9:]{8} run runs/walk/0001  seed 1 `
	liveLine  = `^[0-9:]{8}  env steps [0-9.]+[kMG]?(/[0-9.]+[kMG]?)?  (left [0-9hms]+  )?return `
)

// trainOnTerminal trains until some faults were warned of and progress was shown again, presses Ctrl-C, and returns all output to the terminal.
func trainOnTerminal(t *testing.T, width uint16, env ...string) string {
	t.Helper()
	x := onTerminal(t, width, env, troubled(t), "train")
	x.wait(`(?s)restart=3 .*env steps.*env steps`)
	x.press("\x03")
	code, output := x.end()
	if code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	return output
}

func TestTerminal_NoticesStandAboveOneLiveLine(t *testing.T) {
	t.Parallel()
	const width = 80
	output := trainOnTerminal(t, width, "TERM=xterm-256color", "NO_COLOR=")
	s := &screen{width: width, lines: make([][]rune, 1), wrapped: make([]bool, 1)}
	s.show(output)
	if len(s.odd) > 0 {
		t.Errorf("the terminal gets %v", s.odd)
	}
	if redrawn := strings.Count(output, "\r\x1b[K"); redrawn < 3 {
		t.Errorf("the live line is redrawn %d times, want more", redrawn)
	}
	if !strings.Contains(output, "\x1b[2m") {
		t.Error("labels are not dim")
	}
	whole := regexp.MustCompile(startLine + `|^warning\[R010\]: environments restarted: rollout env 17: trap in rl_step at step 5000: ` +
		`out of bounds memory access in step, called by rl_made_step, rl_advance, rl_step \(faulty.wasm\)  restart=\d+  max_restarts=1000000  lost_env_steps=\d+$` +
		`|^rlhost: interrupted; saving at the next dataset boundary \(Ctrl-C again to stop at once\)$` +
		`|` + liveLine + `|^ended \(interrupted\) after \d+ env steps, [0-9.]+ s$` +
		`|^saved runs/walk/0001  to go on: rlhost train --resume walk/0001$`)
	live := 0
	for i, line := range s.text() {
		if !whole.MatchString(line) {
			t.Errorf("line %d is %q", i, line)
		}
		if regexp.MustCompile(liveLine).MatchString(line) {
			live++
			if n := len([]rune(line)); n >= width {
				t.Errorf("the live line has %d columns of %d", n, width)
			}
		}
	}
	if live != 1 {
		t.Errorf("%d live lines are left, want the last one:\n%s", live, strings.Join(s.text(), "\n"))
	}
}

func TestTerminal_NoColorIsHonoured(t *testing.T) {
	t.Parallel()
	output := trainOnTerminal(t, 80, "TERM=xterm", "NO_COLOR=1")
	if strings.Contains(output, "\x1b[2m") {
		t.Error("there is colour in spite of NO_COLOR")
	}
	if !strings.Contains(output, "\r\x1b[K") {
		t.Error("there is no live line")
	}
}

func TestTerminal_ADumbOneGetsPlainLines(t *testing.T) {
	t.Parallel()
	output := trainOnTerminal(t, 80, "TERM=dumb")
	if strings.Contains(output, "\x1b") {
		t.Errorf("a dumb terminal gets escape sequences: %q", output)
	}
	lines := 0
	for line := range strings.Lines(output) {
		if regexp.MustCompile(liveLine).MatchString(line) {
			lines++
		}
	}
	if lines < 2 {
		t.Errorf("%d lines of progress, want several", lines)
	}
}

// The table of several seeds is drawn over itself in lines that do not wrap, and is replaced by the results of the seeds.
func TestTerminal_SeedsAreOneLiveTable(t *testing.T) {
	t.Parallel()
	const width = 32
	w := newWorkshop(t)
	w.write("pipeline.toml", `
rlhost = 1
[run]
name = "cartpole"
stop = { env_steps = 65536 }
evaluation = { episodes = 3 }
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
env = "cartpole"
mode = "sync"
[component.runner]
every = "20ms"
`)
	code, output := onTerminal(t, width, []string{"TERM=xterm-256color"}, w.dir, "train", "--seeds", "0-3", "--jobs", "2").end()
	if code != 0 {
		t.Fatalf("exit code %d: %q", code, output)
	}
	frames := strings.Split(output, "\x1b[4A\x1b[J")
	if len(frames) < 6 { // the first begins in one, each ends in one, and one follows the last; between them the time decides
		t.Errorf("the table is drawn %d times: %q", len(frames)-1, output)
	}
	row := regexp.MustCompile(`^seed [0-3]    (pending|[0-9]+ env steps.*|return .*)$`)
	var states []string
	for i, frame := range frames[:len(frames)-1] {
		lines := strings.Split(strings.TrimSuffix(frame, "\r\n"), "\r\n")
		for _, line := range lines {
			if !row.MatchString(line) || len([]rune(line)) >= width {
				t.Errorf("frame %d has the line %q", i, line)
			}
			states = append(states, strings.Fields(line + " . .")[3])
		}
		if len(lines) != 4 {
			t.Errorf("frame %d has %d lines", i, len(lines))
		}
	}
	if !slices.Contains(states, "env") {
		t.Error("no frame shows a seed that is trained")
	}
	s := &screen{width: width, lines: make([][]rune, 1), wrapped: make([]bool, 1)}
	s.show(output)
	whole := regexp.MustCompile(`^seed +state +eval_return +greedy +sampled +env_steps +seconds
([0-3] +ended +[0-9.]+ +[0-9.]+ +[0-9.]+ +65536 +[0-9.]+
){4}4 of 4 seeds ended, 0 failed, [0-9.]+ s; set runs/cartpole/0001
mean   .*
median .*
IQM    .* over 4 seeds$`)
	if left := strings.Join(s.text(), "\n"); !whole.MatchString(left) || len(s.odd) > 0 {
		t.Errorf("the terminal shows at the end:\n%s\nand got %v", left, s.odd)
	}
}
