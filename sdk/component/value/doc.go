// Package value is for signals and slots of components whose messages are values: numbers, texts, lists, dicts and arrays, as
// rlhost.plain of the SDK for Python has them. Such a port has the payload "value", in either language.
//
//	&component.Declared{
//		Signals: []component.Output{{Name: "told", Payload: value.Payload}},
//		Slots:   []component.Input{{Name: "on_asked", Payload: value.Payload, Handle: c.onAsked}},
//		OnStart: func(h component.Host) {
//			var err error
//			if c.told, err = value.Bind(h, "told", 1<<12); err != nil {
//				h.Fail(err)
//			}
//		},
//	}
//
//	func (c *counter) onAsked(m *component.Message) error {
//		asked, err := value.Of(m)
//		if err != nil {
//			return err
//		}
//		name, _ := asked.Get("name")
//		return c.told.Emit(value.Dict(value.Text("name"), name, value.Text("count"), value.Int(1)))
//	}
//
// A value is copied into a block of shared memory and out of it. Trajectories and other large things are better named by messages
// with columns of their own; see component.Arena.
package value
