package guest

import (
	"io"
	"log/slog"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/plugins/wasm/engine"
	"github.com/rlhost/rlhost/plugins/wasm/internal/wasmtest"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// must ends the test on an error.
func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// describe does nothing with a module's first instance.
func describe(*Instance) error { return nil }

// prepared returns a module of a guest that was started once.
func prepared(t testing.TB, g wasmtest.Guest) *Module {
	t.Helper()
	return preparedFrom(t, g, env.Source{})
}

// preparedFrom is prepared with what a source says of the module.
func preparedFrom(t testing.TB, g wasmtest.Guest, source env.Source) *Module {
	t.Helper()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	e, err := engine.New(engine.Options{Config: wazero.NewRuntimeConfig(), Imports: Imports, Log: log})
	must(t, err)
	file, content, err := module.Read("guest.wasm", g.Bytes(), source, module.Environments, module.DefaultMaxFileBytes)
	must(t, err)
	code, err := e.Compile(t.Context(), &engine.Job{Path: file.Path, File: content, Code: file.Metered.Code, Limits: file.Config})
	must(t, err)
	m := New(file, code, Output{Log: log})
	must(t, m.Prepare(t.Context(), describe))
	t.Cleanup(func() {
		must(t, m.Close())
		must(t, e.Close())
	})
	return m
}
