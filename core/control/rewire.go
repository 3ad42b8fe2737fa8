package control

import "context"

// Wire is a wire as a pipeline's file writes it. An option that is empty has its default.
type Wire struct {
	Signal string   `json:"signal"` // COMPONENT.SIGNAL; * is each component that has it
	Slot   string   `json:"slot"`   // COMPONENT.SLOT
	Mode   string   `json:"mode,omitempty"`
	Depth  int      `json:"depth,omitempty"`
	OnFull string   `json:"on_full,omitempty"`
	Write  []string `json:"write,omitempty"`
}

// RewireRequest asks for other wires. The wires in Disconnect, which need no options, are taken out before the ones in Connect come in.
type RewireRequest struct {
	Connect    []Wire `json:"connect,omitempty"`
	Disconnect []Wire `json:"disconnect,omitempty"`
	DryRun     bool   `json:"dry_run,omitempty"`
}

// Connect puts a wire into the running pipeline, as a reload of a file with that wire does; see Do.
func (c *Client) Connect(ctx context.Context, w Wire) (ReloadReply, error) {
	return c.rewire(ctx, RewireRequest{Connect: []Wire{w}})
}

// Disconnect takes the wire from a signal to a slot out of the running pipeline; see Do. Messages that wait in it are counted as dropped.
func (c *Client) Disconnect(ctx context.Context, signal, slot string) (ReloadReply, error) {
	return c.rewire(ctx, RewireRequest{Disconnect: []Wire{{Signal: signal, Slot: slot}}})
}

func (c *Client) rewire(ctx context.Context, q RewireRequest) (ReloadReply, error) {
	var reply ReloadReply
	err := c.Do(ctx, VerbRewire, q, &reply, nil)
	return reply, err
}
