package runner

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/plugins/runner/prometheus"
)

// defaultListen is the port that OpenTelemetry and others use for metrics of programs.
const defaultListen = "127.0.0.1:9464"

// listenAddress returns where metrics are served, which is nowhere unless served says so.
func listenAddress(listen string, served bool) (string, error) {
	switch {
	case !served && listen != "":
		return "", &component.ConfigError{Key: "listen", Reason: "is there, and nothing is served", Help: `add "prometheus" to log, or take the key out`}
	case !served:
		return "", nil
	case listen == "":
		return defaultListen, nil
	}
	if _, _, err := net.SplitHostPort(listen); err != nil {
		return "", &component.ConfigError{Key: "listen", Reason: fmt.Sprintf("is %q: %v", listen, err), Help: "write an address and a port, such as " + defaultListen}
	}
	return listen, nil
}

// scraped is the log that Prometheus reads. It keeps the newest row.
type scraped struct {
	exporter *prometheus.Exporter
	address  string
	log      *slog.Logger
	stopped  chan struct{}
}

// newScraped begins to serve metrics. Where another has the address, it waits for that one to end if it may.
func newScraped(e *prometheus.Exporter, address string, log *slog.Logger, mayWait bool) (*scraped, error) {
	s := &scraped{e, address, log, make(chan struct{})}
	l, err := prometheus.Listen(address)
	if err != nil && !(mayWait && errors.Is(err, syscall.EADDRINUSE)) {
		return nil, &component.ConfigError{Key: "listen", Reason: fmt.Sprintf("is %s, which cannot be opened: %v", address, err),
			Help: `take another port for each run; listen = "127.0.0.1:0" takes one that is free, and the log names it`}
	}
	go s.serve(l)
	return s, nil
}

// serve serves until the log is closed. Without a listener it first waits for the address.
func (s *scraped) serve(l net.Listener) {
	for l == nil {
		select {
		case <-s.stopped:
			return
		case <-time.After(50 * time.Millisecond):
			l, _ = prometheus.Listen(s.address)
		}
	}
	s.log.Info("Prometheus finds the metrics", "url", "http://"+l.Addr().String()+prometheus.Path)
	if err := s.exporter.Serve(l); err != nil {
		s.log.Warn("metrics are served no longer", "error", err)
	}
}

func (s *scraped) write(_ time.Time, _ uint64, row []metric) error {
	line := make([]stat.Sample, len(row))
	for i, m := range row {
		line[i] = stat.Sample{Name: m.name, Value: m.value}
	}
	s.exporter.Line(line)
	return nil
}

func (*scraped) mark() int64        { return 0 }
func (*scraped) rewind(int64) error { return nil }

func (s *scraped) close() error {
	close(s.stopped)
	return s.exporter.Close()
}
