package dash

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loopback"
	"github.com/rlhost/rlhost/pipeline/play"
	"github.com/rlhost/rlhost/pipeline/play/web"
	"github.com/rlhost/rlhost/pipeline/runs"
	"github.com/rlhost/rlhost/plugins/builtin"
)

// job is a run of a folder, written by the test, whose job answers status and notes each request.
type job struct {
	t      *testing.T
	run    *runs.Run
	server *control.Server

	mu      sync.Mutex
	status  control.StatusReply
	asked   []string
	refuses *control.Error
}

const pipelineText = "rlhost = 1\n[run]\nname = \"pole\"\n[component.learner]\nlearning_rate = 0.001\n"

// newJob begins a run that is live until the test ends.
func newJob(t *testing.T, dir, name string) *job {
	t.Helper()
	r, err := runs.Create(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{t: t, run: r, status: control.StatusReply{Run: r.ID(), Dir: r.Dir, PID: os.Getpid(), State: control.Running}}
	j.status.Components = []control.ComponentStatus{
		{Name: "rollout", Kind: "rollout", Runtime: "wasm", Host: "local", State: control.Running, Rate: 1000, Unit: "env steps", Version: &control.Version{File: "/x/pole.wasm", Hash: "0123456789abcdef"}},
		{Name: "learner", Kind: "learner", Runtime: "builtin", Host: "local", State: control.Running, Rate: 10, Unit: "messages", Queued: 2, Depth: 4},
	}
	j.status.Wires = []control.WireStatus{{Wire: "rollout.trajectories → learner.on_dataset", Mode: "queue", Delivered: 12, Queued: 2, Depth: 4}}
	verbs := control.Verbs{}
	control.On(verbs, control.VerbStatus, func(context.Context, control.StatusRequest, control.Notice) (control.StatusReply, error) {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.status, nil
	})
	answer(j, verbs, control.VerbPause, func(q control.GroupRequest) control.GroupReply {
		return control.GroupReply{Answers: []control.Answer{{Name: "rollout", State: control.Paused}}}
	})
	answer(j, verbs, control.VerbUnpause, func(q control.GroupRequest) control.GroupReply { return control.GroupReply{} })
	answer(j, verbs, control.VerbCheckpoint, func(q control.CheckpointRequest) control.CheckpointReply {
		return control.CheckpointReply{PolicyVersion: 7, EnvSteps: 7000}
	})
	answer(j, verbs, control.VerbReload, func(q control.ReloadRequest) control.ReloadReply {
		return control.ReloadReply{Outcome: control.Committed, Changes: []control.Change{{What: "component", Name: "learner", Text: strings.Join(q.Sets, " ")}}}
	})
	answer(j, verbs, control.VerbSwap, func(q control.SwapRequest) control.SwapReply {
		return control.SwapReply{Component: q.Component, Outcome: control.Committed, New: control.Version{File: q.File, Hash: "ffff0000"}}
	})
	answer(j, verbs, control.VerbRollback, func(q control.RollbackRequest) control.SwapReply {
		return control.SwapReply{Component: q.Component, Outcome: control.RolledBack}
	})
	answer(j, verbs, control.VerbStop, func(q control.StopRequest) control.StopReply { return control.StopReply{} })
	if j.server, err = control.Listen(control.SocketPath(r.Dir), verbs, control.ListenOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.server.Close(); _ = r.Close() })
	if err := r.WritePipeline([]byte(pipelineText)); err != nil {
		t.Fatal(err)
	}
	if err := r.Update(func(i *runs.Info) { i.Socket, i.Env, i.Policy = control.SocketPath(r.Dir), "pole@1", "main" }); err != nil {
		t.Fatal(err)
	}
	return j
}

// answer makes a job answer a verb, and note the request.
func answer[Q, R any](j *job, verbs control.Verbs, verb control.Verb, reply func(Q) R) {
	control.On(verbs, verb, func(_ context.Context, q Q, _ control.Notice) (r R, err error) {
		text, _ := json.Marshal(q)
		j.mu.Lock()
		defer j.mu.Unlock()
		j.asked = append(j.asked, string(verb)+" "+string(text))
		if j.refuses != nil {
			return r, j.refuses
		}
		return reply(q), nil
	})
}

// set changes what status answers.
func (j *job) set(change func(*control.StatusReply)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.status)
}

// requests returns what the job was asked, but for its status.
func (j *job) requests() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.asked, "\n")
}

// end ends the run as the job itself does.
func (j *job) end(reason string) {
	j.t.Helper()
	if err := j.run.End(reason); err != nil {
		j.t.Fatal(err)
	}
	j.die()
}

// die leaves the run as a process that is killed does.
func (j *job) die() {
	j.t.Helper()
	_ = j.server.Close() // a killed process closes all at once
	if err := j.run.Close(); err != nil {
		j.t.Fatal(err)
	}
}

// write adds text to a file of the run's folder.
func (j *job) write(name, text string) {
	j.t.Helper()
	f, err := os.OpenFile(filepath.Join(j.run.Dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		j.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		j.t.Fatal(err)
	}
}

// metrics is text of lines of a log of metrics, from one to another, with as many metrics as a run has.
func metricsText(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `{"global_step":%d,"time":1796013793.8,"charts/SPS":%g,"charts/episodic_return":%g,"charts/episodic_length":200,"perf/wall_seconds":%g,"policy_version":%d,`,
			1000*(i+1), 5e5+1e4*math.Sin(float64(i)), 100*math.Sin(float64(i)/20000)+float64(i%7), 0.01*float64(i+1), i+1)
		fmt.Fprintf(&b, `"losses/policy_loss":%g,"losses/value_loss":12.5,"losses/entropy":%g,"losses/approx_kl":0.004,"losses/clipfrac":0.03,"lag/mean":0.5,"lag/max":1`, 0.01*math.Cos(float64(i)), 0.69*math.Exp(-float64(i)/5e4))
		for k := range 60 {
			fmt.Fprintf(&b, `,"component%02d/counter_of_something":%d`, k, i*k)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

// serve begins to serve pages of a folder until the test ends.
func serve(t *testing.T, o Options) string {
	t.Helper()
	o.Log = slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := loopback.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.URL(l)
}

// drawnRuns draws a built-in environment for any run.
type drawnRuns struct {
	t           *testing.T
	use         string
	stale, fail atomic.Bool

	mu           sync.Mutex
	opened, open int
}

// count returns how many stages were opened, and how many are.
func (d *drawnRuns) count() (opened, open int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opened, d.open
}

// Open is Opener's.
func (d *drawnRuns) Open(ctx context.Context, n int) (*web.Stage, error) {
	if d.fail.Load() {
		return nil, errors.New("no checkpoint <b>yet")
	}
	parts, engines := builtin.New(builtin.Options{})
	source := env.DefaultSource()
	source.Use = d.use
	plugin, err := parts.Load(ctx, "", graph.EnvTable{Source: source}, ".")
	if err != nil {
		return nil, err
	}
	game, err := play.New(plugin, play.Options{Seed: uint64(n)})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened, d.open = d.opened+1, d.open+1
	return &web.Stage{Show: play.NewShow(game, nil, 50), What: fmt.Sprintf("weights %d", n), Close: func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.open--
		return errors.Join(game.Close(), plugin.Close(), engines.Close())
	}}, nil
}

// Stale is Opener's.
func (d *drawnRuns) Stale() bool { return d.stale.Swap(false) }

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Errorf("the server logs %s", p)
	return len(p), nil
}

// get returns the answer to a request, whose parts change is given.
func get(t *testing.T, address string, change ...func(*http.Request)) (int, string) {
	t.Helper()
	q, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(q)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

// post sends a form as a page does.
func post(t *testing.T, address string, form url.Values, change ...func(*http.Request)) (int, string) {
	t.Helper()
	return get(t, address, append([]func(*http.Request){func(q *http.Request) {
		q.Method = http.MethodPost
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		q.Header.Set("Accept", "text/plain")
		q.Body = io.NopCloser(strings.NewReader(form.Encode()))
	}}, change...)...)
}

// watch reads events until ok holds of what all of them say.
func watch(t *testing.T, address, what string, ok func(all string) bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var all strings.Builder
	for in := bufio.NewReader(r.Body); !ok(all.String()); {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%s never came: %v\n%s", what, err, all.String())
		}
		all.WriteString(line)
	}
}

// connect opens a connection and sends text.
func connect(t *testing.T, address, text string) net.Conn {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestMain(m *testing.M) { os.Exit(testkit.Run(m)) }
