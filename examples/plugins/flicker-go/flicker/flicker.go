// Package flicker is a wrapper of observations: one in every of an episode is all zeros.
package flicker

import (
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/sdk/component"
)

type flicker struct {
	Every int32 `toml:"every"`

	obs, begins, count component.Column
	answers            component.Signal
}

// New returns an unconfigured flicker.
func New() component.Component {
	c := &flicker{Every: 2}
	return &component.Declared{
		Config:  c,
		Check:   func() error { return component.Require(c.Every > 1, "every", "want 2 or more") },
		Signals: []component.Output{{Name: "observed", Payload: "observations", Doc: "they have been written", Bind: &c.answers}},
		Slots: []component.Input{{Name: "on_observe", Payload: "observe_request", Doc: "what a batch observes", Handle: c.onObserve,
			Columns: []component.Want{{Name: "obs", DType: hostabi.F32, Into: &c.obs, Write: true}, {Name: "wrapper_begins", DType: hostabi.U8, Into: &c.begins},
				{Name: "wrapper_state", DType: hostabi.I32, Into: &c.count, Write: true}}}},
	}
}

func (c *flicker) onObserve(m *component.Message) error {
	count := c.count.Int32()
	for env := range count {
		if count[env]++; c.begins.Bytes[env] != 0 {
			count[env] = 1
		}
		if count[env]%c.Every == 0 {
			clear(c.obs.Row(0, env).Float32())
		}
	}
	return component.Pass(c.answers, m)
}
