// Values is a component that answers each value with a dict of it and its number, and one for itself that is too long.
package main

import (
	"github.com/rlhost/rlhost/sdk/component"
	"github.com/rlhost/rlhost/sdk/component/value"
	"github.com/rlhost/rlhost/sdk/process"
)

type echo struct {
	told  *value.Signal
	count int64
}

func (e *echo) onAsked(m *component.Message) error {
	asked, err := value.Of(m)
	if err != nil {
		return err
	}
	e.count++
	return e.told.Emit(value.Dict(value.Text("asked"), asked, value.Text("count"), value.Int(e.count)))
}

func newEcho() component.Component {
	e := &echo{}
	return &component.Declared{
		Signals: []component.Output{{Name: "told", Payload: value.Payload}},
		Slots:   []component.Input{{Name: "on_asked", Payload: value.Payload, Handle: e.onAsked}},
		OnStart: func(h component.Host) {
			var err error
			if e.told, err = value.Bind(h, "told", 4096); err != nil {
				h.Fail(err)
			}
		},
	}
}

func main() {
	process.Serve(process.Plugin{Components: map[string]func() component.Component{"echo": newEcho}})
}
