// Dash measures what a page that somebody looks at takes of a run: one with the page open, live, and its Prometheus numbers scraped each second,
// against one with neither. The page and its stream are read as a browser reads them: the pictures that can be seen come again with each change,
// and with -live the environment is drawn by the newest weights. Runs alternate, and every round has two plain ones: the ratio of those is the control.
//
// Two ratios are printed. Env steps in a fixed time are what a user sees; they want a machine that does nothing else. Processor time of an env
// step is that of the run and of rlhost dash together, and is little disturbed by other work. Both are the run alone over the run with the page,
// so that 0.97 is a loss of 3 % where the run uses all processors; where it leaves some idle, the page takes those, and the first ratio is higher.
//
//	go build -o bin/ ./cmd/rlhost && go run ./bench/dash -rlhost bin/rlhost -rounds 8 -seconds 10
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

const pipeline = `rlhost = 1
[run]
name = "dash"
stop = { wall_time = "%gs" }
checkpoint = { every = "%s" }
[run.evaluation]
episodes = 1
[env.cartpole]
use = "cartpole@1"
[train]
preset = "fast"
`

// inSight is how many pictures of the page a window of 1920 × 1080 shows, with those just below it.
const inSight = 6

func main() {
	program := flag.String("rlhost", "bin/rlhost", "the program")
	rounds := flag.Int("rounds", 8, "rounds of three runs")
	seconds := flag.Float64("seconds", 10, "how long a run trains")
	live := flag.Bool("live", false, "draw the environment, too")
	flag.Parse()
	if err := measure(*program, *rounds, *seconds, *live); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(program string, rounds int, seconds float64, live bool) error {
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "bench-dash-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "pipeline.toml")
	every := "60s"
	if live {
		every = "2s" // the picture begins with the first
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, pipeline, seconds, every), 0o644); err != nil {
		return err
	}
	b := &bench{program: program, dir: dir, live: live}
	var steps, processor ratios
	var page []float64
	for round := range rounds {
		took := map[string]took{}
		order := []string{"plain", "open", "again"}
		order = append(order[round%3:], order[:round%3]...)
		for _, name := range order {
			if took[name], err = b.train(name == "open"); err != nil {
				return err
			}
		}
		plain, open, again := took["plain"], took["open"], took["again"]
		steps.add(plain.steps, open.steps, again.steps)
		processor.add(1/plain.each(), 1/open.each(), 1/again.each())
		page = append(page, open.page/seconds)
		fmt.Printf("round %d: env steps %s, processor time %s; %.0f env steps plain, the page takes %.3f of a processor\n",
			round+1, steps.last(), processor.last(), plain.steps, page[round])
	}
	fmt.Printf("median: env steps %s, processor time %s; the page takes %.3f of a processor\n", steps.median(), processor.median(), median(page))
	fmt.Printf("a page of %d bytes, %d events, %d pictures, %d scrapes and %d frames of the environment a run\n",
		b.seen.page, b.seen.events/rounds, b.seen.pictures/rounds, b.seen.scrapes/rounds, b.seen.frames/rounds)
	return nil
}

// took is what a run has made and taken.
type took struct{ steps, run, page float64 } // env steps, and seconds of processors

// each is the processor time of an env step.
func (t took) each() float64 { return (t.run + t.page) / t.steps }

// ratios are runs with the page, and the second of two plain runs, against plain runs: one of each a round.
type ratios struct{ open, control []float64 }

func (r *ratios) add(plain, open, again float64) {
	r.open, r.control = append(r.open, 2*open/(plain+again)), append(r.control, again/plain)
}

func (r *ratios) last() string { return text(r.open[len(r.open)-1], r.control[len(r.control)-1]) }

func (r *ratios) median() string { return text(median(r.open), median(r.control)) }

func text(open, control float64) string { return fmt.Sprintf("%.3f (control %.3f)", open, control) }

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

type bench struct {
	program, dir string
	live         bool
	runs         int
	seen         seen
}

// seen is what the reader of the page got.
type seen struct{ page, events, pictures, scrapes, frames int }

// train returns what one run takes.
func (b *bench) train(open bool) (t took, err error) {
	b.runs++
	id := fmt.Sprintf("dash/%04d", b.runs)
	run := exec.Command(b.program, "train", "--json")
	run.Dir = b.dir
	out, err := run.StdoutPipe()
	if err != nil {
		return t, err
	}
	if err := run.Start(); err != nil {
		return t, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var looking sync.WaitGroup
	var lookErr error
	if open {
		looking.Go(func() { t.page, lookErr = b.look(ctx, id) })
	}
	var last []byte
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		last = slices.Clone(lines.Bytes())
	}
	err = errors.Join(lines.Err(), run.Wait())
	cancel()
	looking.Wait()
	var end struct {
		EnvSteps float64 `json:"env_steps"`
	}
	if err = errors.Join(err, lookErr, json.Unmarshal(last, &end)); err != nil {
		return t, err
	}
	if end.EnvSteps == 0 {
		return t, fmt.Errorf("a run ended with %s", last)
	}
	t.steps, t.run = end.EnvSteps, processors(run)
	return t, nil
}

// processors is the processor time of a program that has ended, in seconds.
func processors(of *exec.Cmd) float64 {
	return (of.ProcessState.UserTime() + of.ProcessState.SystemTime()).Seconds()
}

var (
	urlLine  = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\w+/`)
	pictures = regexp.MustCompile(`<img src="(curve\.svg\?[^"]+)"`)
)

// look serves the page of a run and reads it until ctx ends. It returns the processor time of rlhost dash.
func (b *bench) look(ctx context.Context, id string) (page float64, err error) {
	dash := exec.CommandContext(ctx, b.program, "dash", id)
	dash.Dir, dash.Cancel = b.dir, func() error { return dash.Process.Signal(os.Interrupt) }
	out, err := dash.StdoutPipe()
	if err != nil {
		return 0, err
	}
	dash.Stderr = dash.Stdout
	if err := dash.Start(); err != nil {
		return 0, err
	}
	var root string
	for lines := bufio.NewScanner(out); root == "" && lines.Scan(); {
		root = urlLine.FindString(lines.Text())
	}
	if root == "" {
		return 0, errors.Join(errors.New("rlhost dash names no address"), dash.Wait())
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	err = b.read(ctx, root, id)
	if ctx.Err() != nil {
		err = nil
	}
	_ = dash.Wait() // it was interrupted
	return processors(dash), err
}

// read loads the page as a browser does, then takes events, pictures and each second the numbers for Prometheus.
func (b *bench) read(ctx context.Context, root, id string) error {
	query := "run?run=" + url.QueryEscape(id)
	html, err := get(ctx, root+query)
	for err != nil || !pictures.Match(html) { // the run is about to begin
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s%s shows no curve: %w", root, query, err)
		case <-time.After(50 * time.Millisecond):
		}
		html, err = get(ctx, root+query)
	}
	b.seen.page = len(html)
	for _, name := range []string{"style.css", "script.js"} {
		if _, err := get(ctx, root+name); err != nil {
			return err
		}
	}
	var shown []string
	for _, m := range pictures.FindAllSubmatch(html, inSight) {
		shown = append(shown, strings.ReplaceAll(string(m[1]), "&amp;", "&"))
	}
	scraping, drawing := make(chan error, 1), make(chan error, 1)
	go func() { scraping <- b.scrape(ctx, root) }()
	go func() {
		if b.live {
			drawing <- b.draw(ctx, root+"live?"+strings.TrimPrefix(query, "run?"))
		}
		close(drawing)
	}()
	return errors.Join(b.follow(ctx, root, "events?"+strings.TrimPrefix(query, "run?"), shown), <-scraping, <-drawing)
}

// draw takes the pictures of the environment.
func (b *bench) draw(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	for lines := bufio.NewReaderSize(answer.Body, 1<<20); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.Contains(line, `"picture":`) {
			b.seen.frames++
		}
	}
}

func (b *bench) scrape(ctx context.Context, root string) error {
	for tick := time.NewTicker(time.Second); ; {
		if _, err := get(ctx, root+"metrics"); err != nil {
			return err
		}
		b.seen.scrapes++
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// follow takes events; with one of curves it reads all pictures that are shown again.
func (b *bench) follow(ctx context.Context, root, events string, shown []string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, root+events, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	lines := bufio.NewReaderSize(answer.Body, 1<<20)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if !strings.HasPrefix(line, "event: ") {
			continue
		}
		b.seen.events++
		if line != "event: curves\n" {
			continue
		}
		for _, address := range shown {
			if _, err := get(ctx, fmt.Sprintf("%s%s&v=%d", root, address, b.seen.events)); err != nil {
				return err
			}
			b.seen.pictures++
		}
	}
}

func get(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", address, answer.Status, content)
	}
	return content, err
}
