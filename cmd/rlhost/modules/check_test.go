package modules

import (
	"errors"
	"io"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/table"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/plugins/wasm/module"
)

// A pipe without a writer is no recording: opening it would wait for ever.
func TestCheck_RefusesARecordThatIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "blocks.rec")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Check{Record: path}).messages(); !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("%v", err)
	}
}

// observer is a wrapper of observations.
type observer struct {
	component.Component
	configure error
	stops     *int
}

func (observer) Manifest() component.Manifest {
	return component.Manifest{
		Slots:   []component.Port{{Name: "on_observe", Payload: component.PayloadObserve}},
		Signals: []component.Port{{Name: "observed", Payload: component.PayloadObserved}},
	}
}

func (o observer) Configure(func(into any) error) error { return o.configure }

func (o observer) Stop() error {
	*o.stops++
	return nil
}

// One instance tells what a module is: too new, or a wrapper, which is then checked around the environments that there are.
func TestCheck_MakesAModuleOnceToSeeWhatItIs(t *testing.T) {
	future := &table.Error{Code: module.CodeFuture, Reason: "is of another version"}
	for name, c := range map[string]struct{ configure, want error }{
		"a wrapper": {}, "a later ABI": {configure: future, want: future},
	} {
		made, stops := 0, 0
		parts := &graph.Parts{Module: func(graph.ModuleTable, string) graph.Maker {
			return func() (component.Component, error) {
				made++
				return observer{configure: c.configure, stops: &stops}, nil
			}
		}}
		results, err := Check{Use: "observer.wasm"}.Run(parts, io.Discard)
		if !errors.Is(err, c.want) || results != nil {
			t.Errorf("%s: %v, %v, want %v", name, results, err, c.want)
		}
		if made != 1 || stops != 1 {
			t.Errorf("%s: made %d times and stopped %d times, want once", name, made, stops)
		}
	}
}
