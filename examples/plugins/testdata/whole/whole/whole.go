// Package whole is as whole.c.
package whole

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/rlhost/rlhost/sdk/component"
)

type whole struct {
	host component.Host
	out  component.Signal
}

// New returns an unconfigured component.
func New() component.Component {
	c := &whole{}
	return &component.Declared{
		Signals:  []component.Output{{Name: "out", Payload: "note", Doc: "notes", Schema: 0x8000000000000009, Bind: &c.out}},
		Slots:    []component.Input{{Name: "in", Payload: "trajectory", Doc: "what to do", Schema: 7, Handle: c.onIn}},
		Requests: []component.Question{component.Asked("twice", "twice x", twice)},
		Asks:     []component.Request{component.Asking[struct{}]("other", "is not asked"), component.Asking[halved]("half", "of another")},
		OnStart:  c.start,
		OnPause:  c.says(1), OnResume: c.says(2), OnStop: c.says(3),
	}
}

type question struct {
	X    float64 `json:"x"`
	Name string  `json:"name,omitempty"`
	N    *int    `json:"n,omitempty"`
}

type halved struct {
	X float64 `json:"x"`
}

type answer struct {
	X    float64 `json:"x"`
	Name string  `json:"name"`
	N    int     `json:"n"`
}

func twice(q question) (answer, error) {
	if q.X < 0 {
		return answer{}, errors.New("x: want 0 or more")
	}
	a := answer{2 * q.X, q.Name, -1}
	if q.N != nil {
		a.N = *q.N
	}
	return a, nil
}

func (c *whole) says(state float64) func() error {
	return func() error {
		if c.host != nil {
			c.host.Gauge("whole/state").Set(state)
		}
		return nil
	}
}

func (c *whole) start(h component.Host) {
	c.host = h
	id, sync := h.Identity(), 0.0
	if id.Synchronous {
		sync = 10
	}
	h.Gauge("whole/me").Set(float64(len(id.Name))*1e6 + float64(id.Index)*1e4 + float64(id.Count)*1e2 + sync + float64(id.Seed))
}

func (c *whole) onIn(m *component.Message) error {
	switch m.Kind {
	case 0:
		reward, err := m.Block.Writable("reward")
		if err != nil {
			return err
		}
		c.host.Gauge("whole/value").Set(float64(reward.Float32()[0]))
		if _, err := m.Block.Column("absent"); err != nil {
			c.host.Gauge("whole/named").Set(1)
		}
		reward.Float32()[0]++
	case 1:
		all := 0.0
		for range 3 {
			o, err := c.out.Emit(component.Message{})
			if err != nil {
				return err
			}
			all = 10*all + float64(o)
		}
		c.host.Gauge("whole/outcomes").Set(all)
	case 2:
		if t := c.host.After(time.Hour, func() {}); t.Stop() && !t.Stop() {
			c.host.Gauge("whole/cancelled").Set(1)
		}
	case 4:
		component.Ask(c.host, "half", halved{2.5}, time.Second, c.came)
	default:
		c.host.Stop(component.StopEnvSteps)
	}
	return nil
}

// came reports an answer, which is a number or has one, and the code and the type of an error.
func (c *whole) came(reply json.RawMessage, err error) {
	var named struct{ Y float64 }
	number := -1.0
	switch {
	case errors.Is(err, component.ErrLate):
		c.host.Gauge("whole/fault").Set(123)
		return
	case errors.Is(err, component.ErrLost):
		c.host.Gauge("whole/fault").Set(125)
		return
	case err != nil:
		kind, _, _ := strings.Cut(err.Error(), ":")
		c.host.Gauge("whole/fault").Set(122 + float64(len(kind))/100)
		return
	}
	if json.Unmarshal(reply, &number) != nil && json.Unmarshal(reply, &named) == nil {
		number = named.Y
	}
	c.host.Gauge("whole/answered").Set(number)
	c.host.Gauge("whole/fault").Set(0)
}
