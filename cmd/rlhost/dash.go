package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"syscall"

	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/pipeline/dash"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loopback"
	"github.com/rlhost/rlhost/plugins/builtin"
	"github.com/rlhost/rlhost/plugins/runner/prometheus"
)

// codeNoPage is the code of a page that cannot be served where it is wanted.
const codeNoPage = "E115"

// dashNice is how far the page stands back for runs on this machine.
const dashNice = 10

type dashCommand struct {
	RunIDs []string `arg:"" optional:"" name:"run" help:"Runs or sets of seeds, also ones that begin later; default all of the folder."`
	runsFlag
	Port uint16 `placeholder:"PORT" help:"Port of 127.0.0.1; default a free one."`
}

// Help says what the page shows, and who can see it.
func (c *dashCommand) Help() string {
	return `A page for a browser on this machine: curves of live and finished runs, components with rates and queues, episodes, evaluations,
changes, the log, and buttons with the command that each stands for. The environment is drawn as the newest weights play it.
The page's address has a secret word; nobody else can open it.
Over ssh, with the port that is printed:  ssh -L 8000:127.0.0.1:PORT HOST, then open the address with 8000 for the port.

  rlhost dash
  rlhost dash cartpole/3 cartpole/4`
}

// Run serves the page until it is interrupted.
func (c *dashCommand) Run(p *program) error {
	standBack()
	return p.withParts(func(parts *graph.Parts, _ *builtin.Engines) error {
		opener := func(dir string) dash.Opener { return &liveRun{parts: *parts, dir: dir, log: p.logger()} }
		server, err := dash.New(dash.Options{Dir: c.Dir(), Words: c.RunIDs, Metrics: newestLines, Opener: opener, Log: p.logger()})
		if err != nil {
			return err
		}
		l, err := listen(c.Port)
		if err != nil {
			return err
		}
		ctx, stop := untilAsked()
		defer stop()
		fmt.Fprintln(p.out, server.URL(l))
		return server.Serve(ctx, l)
	})
}

// listen opens a port of 127.0.0.1, or a free one for 0.
func listen(port uint16) (net.Listener, error) {
	l, err := loopback.Listen(net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, syscall.EACCES) {
		return nil, fail(exitUsage, fmt.Errorf("--port %d: error[%s]: %w\n  help: leave --port out, and a free one is taken", port, codeNoPage, err))
	}
	return l, err
}

// newestLines serves what the newest lines of runs say, for Prometheus.
func newestLines(list []dash.Figures) http.Handler {
	exporters := make([]*prometheus.Exporter, len(list))
	for i, figures := range list {
		exporters[i] = prometheus.New(figures.Run, figures.Policy, stat.NewRegistry())
		line := make([]stat.Sample, 0, len(figures.Values))
		for name, value := range figures.Values {
			line = append(line, stat.Sample{Name: name, Value: value})
		}
		exporters[i].Line(line)
	}
	return prometheus.Handler(exporters...)
}

// standBack lowers the priority of each thread of this process, which the threads that they start inherit.
func standBack() {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return // then runs and the page are equals
	}
	for _, thread := range threads {
		if id, err := strconv.Atoi(thread.Name()); err == nil {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, id, dashNice)
		}
	}
}
