package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rlhost/rlhost/internal/testkit"
)

// shownFrame is what a page is told.
type shownFrame struct {
	Picture                       []byte
	Text, Said, By, Note, Problem string
}

// pageOf starts a command that serves a page, and returns its address. end interrupts it where it has not ended, as the test does; it must end well.
func (w *workshop) pageOf(args ...string) (address string, end func(interrupt bool) (output string)) {
	w.t.Helper()
	c := w.command(args...)
	out, err := c.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	in, ended := bufio.NewReader(out), false
	end = func(interrupt bool) string {
		if ended {
			return ""
		}
		if ended = true; interrupt {
			_ = c.Process.Signal(os.Interrupt) // it may have ended
		}
		rest, _ := io.ReadAll(in)
		if err := c.Wait(); err != nil || stderr.Len() > 0 {
			w.t.Errorf("%v: %v\n%s", args, err, &stderr)
		}
		return string(rest)
	}
	w.t.Cleanup(func() { end(true) })
	if address, err = in.ReadString('\n'); err != nil {
		w.t.Fatalf("%v: %v", args, err)
	}
	return strings.TrimSpace(address), end
}

// frames reads frames until ok holds of one, and returns that.
func frames(t *testing.T, address string, ok func(f *shownFrame) bool) (f *shownFrame) {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	for lines := bufio.NewReader(r.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%d %v, the last frame is %+v", r.StatusCode, err, f)
		}
		data, is := strings.CutPrefix(line, "data: ")
		if !is {
			continue
		}
		if f = (&shownFrame{}); json.Unmarshal([]byte(data), f) != nil {
			t.Fatalf("a frame is %q", line)
		}
		if ok(f) {
			return f
		}
	}
}

// The page about runs draws the environment that the newest weights play, of a run that trains and of one that has ended, and says why it cannot.
func TestDash_DrawsWhatTheNewestWeightsDo(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.write("plain.toml", plain)
	w.host("plain.toml", "--set", "run.stop={}", "--set", "run.checkpoint.every=300ms", "--set", "component.learner.learning_rate=1e-12")
	w.write("blind.toml", strings.NewReplacer("cartpole@1", "mountaincar@1", `"cartpole"`, `"blind"`).Replace(plain))
	root, _ := w.pageOf("dash")
	live := root + "live?" + url.Values{"run": {"cartpole/0001"}}.Encode()
	var first, next string
	version := func(f *shownFrame) string { _, v, _ := strings.Cut(f.Said, "at policy version "); return v }
	f := frames(t, live, func(f *shownFrame) bool { first = version(f); return f.Picture != nil })
	if picture, err := png.Decode(bytes.NewReader(f.Picture)); err != nil || picture.Bounds().Dx() != 240 || f.By != "policy" {
		t.Errorf("%v, %q plays, the picture is %v", err, f.By, picture.Bounds())
	}
	frames(t, live, func(f *shownFrame) bool { next = version(f); return next != first && next != "" })
	if code := statusOf(t, root+"live?run=nobody"); code != http.StatusNotFound {
		t.Errorf("a run that there is not: %d", code)
	}
	w.train("blind.toml")
	w.train("blind.toml", "--set", "run.name=ended", "--set", "env.cartpole.use=cartpole@1")
	testkit.Until(t, "the page knows the runs", func() bool { return statusOf(t, root+"run?run=ended%2F0001") == http.StatusOK })
	f = frames(t, root+"live?run=blind%2F0001", func(f *shownFrame) bool { return f.Problem != "" })
	if !strings.Contains(f.Problem, "mountaincar@1: error[E156]: it draws no pictures") {
		t.Errorf("an environment without pictures: %s", f.Problem)
	}
	frames(t, root+"live?run=ended%2F0001", func(f *shownFrame) bool { return f.Picture != nil })
}

// statusOf asks an address.
func statusOf(t *testing.T, address string) int {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	return r.StatusCode
}

// Looking at a run's page runs no program of another user.
func TestDash_DrawsNothingOfAnotherUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := mine(dir); err != nil {
		t.Error(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	} else {
		dir = "/"
	}
	if err := mine(dir); err == nil || !strings.Contains(err.Error(), "error["+codeNotMine+"]") || !strings.Contains(err.Error(), "rlhost watch "+dir) {
		t.Errorf("a folder of another user: %v", err)
	}
}

// A game on a page is played by keys, writes a film, and ends with its episodes or with Ctrl-C.
func TestPlay_OnAPage(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	root, end := w.pageOf("play", "cartpole@1", "--web", "--record", "film.gif", "--episodes", "1", "--fps", "200")
	looking, err := http.Get(root + "frames")
	if err != nil {
		t.Fatal(err)
	}
	defer looking.Body.Close()
	if r, err := http.PostForm(root+"key", url.Values{"key": {"left"}}); err != nil || r.StatusCode != http.StatusNoContent {
		t.Fatalf("a key: %v %v", r, err)
	}
	all, _ := io.ReadAll(looking.Body) // until the page ends
	if output := end(false); !regexp.MustCompile(`^film.gif has \d+ pictures\n$`).MatchString(output) {
		t.Errorf("it says %q, and its page\n%.500s", output, all)
	}
	root, end = w.pageOf("watch", "connectfour@1", "--web")
	f := frames(t, root+"frames", func(f *shownFrame) bool { return f.Picture != nil })
	if f.By != "random" {
		t.Errorf("%q plays", f.By)
	}
	end(true)
	w.fails(exitUsage, []string{"watch", "cartpole@1", "--port", "8000"}, "--port is for --web")
}
