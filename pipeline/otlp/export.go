package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/core/trace"
)

// Options of an exporter.
type Options struct {
	Run    string       // service.instance.id of its traces
	Folder string       // that names of files are relative to
	Log    *slog.Logger // gets the first error, and how many traces were lost
}

// Limits of an exporter.
const (
	waiting  = 16              // traces; further ones are lost
	patience = 5 * time.Second // for one answer, and for the last traces at the end
	path     = "/v1/traces"    // of OTLP by HTTP
)

// Exporter writes traces in a goroutine of its own. A trace that cannot be written is lost, and counted.
type Exporter struct {
	o      Options
	to     string // where they go, for errors
	send   func(ctx context.Context, line []byte) error
	file   *os.File
	traces chan trace.Way
	ended  sync.WaitGroup
	stop   context.CancelFunc
	lost   atomic.Uint64
}

// Open returns an exporter to a file, which it appends to, or to the address of a server.
func Open(to string, o Options) (*Exporter, error) {
	e := &Exporter{o: o, to: to, traces: make(chan trace.Way, waiting)}
	address, err := trace.IsAddress(to)
	if err != nil {
		return nil, err
	}
	if address {
		e.send = post(to)
	} else {
		if e.file, err = files.OpenFile(files.In(o.Folder, to), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
			return nil, err
		}
		e.send = appendTo(e.file)
	}
	ctx, stop := context.WithCancel(context.Background())
	e.stop = stop
	e.ended.Go(func() { e.run(ctx) })
	return e, nil
}

// Export takes a way that has ended. It does not block.
func (e *Exporter) Export(way trace.Way) {
	select {
	case e.traces <- way:
	default:
		e.lost.Add(1)
	}
}

// Close writes the traces that wait, for some seconds at most. No Export may come any more.
func (e *Exporter) Close() error {
	close(e.traces)
	timer := time.AfterFunc(patience, e.stop)
	e.ended.Wait()
	timer.Stop()
	e.stop()
	if n := e.lost.Load(); n > 0 {
		e.o.Log.Warn("traces were lost", "to", e.to, "count", n)
	}
	if e.file != nil {
		return e.file.Close()
	}
	return nil
}

func (e *Exporter) run(ctx context.Context) {
	warned := false
	for way := range e.traces {
		line, err := encode(e.o.Run, way)
		if err == nil {
			err = e.send(ctx, line)
		}
		if err == nil {
			continue
		}
		e.lost.Add(1)
		if !warned {
			warned = true
			e.o.Log.Warn("a trace is lost, training continues; later ones are only counted", "to", e.to, "error", err)
		}
	}
}

// appendTo returns what writes lines to the end of a file.
func appendTo(f *os.File) func(ctx context.Context, line []byte) error {
	var newest time.Time
	return func(_ context.Context, line []byte) error {
		now := time.Now()
		if info, err := f.Stat(); err != nil || info.Size() > metrics.FullTraces && now.Sub(newest) < metrics.TracesPeriod {
			return err
		}
		newest = now
		_, err := f.Write(append(line, '\n'))
		return err
	}
}

// post returns what sends requests to a server.
func post(to string) func(ctx context.Context, line []byte) error {
	address := strings.TrimSuffix(to, "/")
	if !strings.HasSuffix(address, path) {
		address += path
	}
	client := &http.Client{Timeout: patience}
	return func(ctx context.Context, line []byte) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(line))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		said, err := io.ReadAll(io.LimitReader(answer.Body, 200))
		if err = errors.Join(err, answer.Body.Close()); answer.StatusCode/100 != 2 {
			err = fmt.Errorf("%s answers %s: %.200q", address, answer.Status, said)
		}
		return err
	}
}
