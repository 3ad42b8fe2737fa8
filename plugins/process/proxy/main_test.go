package proxy

import (
	"log/slog"
	"testing"
	"time"

	"github.com/rlhost/rlhost/plugins/process/internal/rig"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

func TestMain(m *testing.M) { rig.Main(m, play, func() {}) }

// self returns a program that is this test binary in a role.
func self(t testing.TB, role ...string) spawn.Program {
	return spawn.Program{Name: role[0], Path: rig.Self(t), Args: role, Start: 10 * time.Second}
}

// newRuntime returns a runtime that is closed at the end of the test, and what it logs.
func newRuntime(t testing.TB, o spawn.Options) (*spawn.Runtime, *rig.Log) {
	t.Helper()
	log := new(rig.Log)
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
	r, err := spawn.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close the runtime: %v", err)
		}
	})
	return r, log
}

func play(role string, args []string) {
	switch role {
	case "probe":
		serveProbe()
	case "host":
		playHost(args[0])
	case "keeper":
		serveKeeper()
	case "liar":
		playLiar(args[0], args[1])
	case "hostile":
		playHostile(args[0], args[1])
	default:
		panic("no role " + role)
	}
}
