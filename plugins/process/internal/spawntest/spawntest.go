// Package spawntest starts test binaries through package spawn, for tests of the packages above it; package rig is for spawn's own tests too.
package spawntest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/plugins/process/internal/rig"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// Self returns a program that is this test binary in a role.
func Self(t testing.TB, role ...string) spawn.Program {
	return spawn.Program{Name: role[0], Path: rig.Self(t), Args: role, Start: 10 * time.Second}
}

// NewRuntime returns a runtime that is closed at the end of the test, and its log.
func NewRuntime(t testing.TB, o spawn.Options) (*spawn.Runtime, *testkit.Buffer) {
	t.Helper()
	log := new(testkit.Buffer)
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
