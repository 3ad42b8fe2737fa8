package objects

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/core/objects/wire"
)

func configured(t *testing.T, socket string) *Component {
	t.Helper()
	c := New()
	err := c.Configure(func(into any) error { into.(*config).Socket = socket; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestComponent_ServesFromStartToStop(t *testing.T) {
	path := socketPath(t)
	host := &component.Host{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	c := configured(t, path)
	if err := c.Start(host); err != nil {
		t.Fatal(err)
	}
	connect(t, path).must(t, wire.Request{Op: wire.OpList})
	if err := configured(t, path).Start(host); !errors.Is(err, ipc.ErrInUse) {
		t.Errorf("a second component at that path = %v, want ipc.ErrInUse", err)
	}
	if _, err := c.Snapshot(); err != nil {
		t.Errorf("Snapshot = %v", err)
	}
	if err := errors.Join(c.Restore(component.State{}), c.Stop(), c.Stop()); err != nil {
		t.Errorf("Stop = %v", err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestComponent_ChecksItsConfiguration(t *testing.T) {
	for _, bad := range []config{{Memory: -1, Clients: 1}, {Clients: 0}, {Clients: -1}} {
		err := New().Configure(func(into any) error { *into.(*config) = bad; return nil })
		var wrong *component.ConfigError
		if !errors.As(err, &wrong) {
			t.Errorf("%+v = %v, want a ConfigError", bad, err)
		}
	}
}
