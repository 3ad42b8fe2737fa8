package graph

import (
	"github.com/rlhost/rlhost/core/bus"
	"github.com/rlhost/rlhost/core/component"
)

// delivery is how messages wait on a wire.
type delivery struct {
	mode   bus.Mode
	depth  int
	onFull bus.Overflow
}

// plainDelivery loses nothing, and gives every receiver every message.
var plainDelivery = delivery{bus.All, 64, bus.Block}

// deliveryOf returns the delivery of wires of a payload that say nothing else.
func deliveryOf(payload string) delivery {
	p := component.PayloadOf(payload)
	switch {
	case p.Answers:
		return delivery{bus.Reply, 64, bus.Block}
	case p.AnsweredBy != "" || p.Steps:
		return delivery{bus.Queue, 64, bus.Block}
	case p.Learned:
		return delivery{bus.Queue, 4, bus.Block}
	case p.Publishes:
		return newestDelivery
	case payload == component.PayloadStats:
		return delivery{bus.All, 256, bus.Block}
	case payload == component.PayloadEpisode:
		return delivery{bus.All, 4096, bus.Block}
	}
	return plainDelivery
}

// newestDelivery keeps the newest message alone.
var newestDelivery = delivery{bus.Latest, 1, bus.Coalesce}

// fillDelivery sets what a wire's table leaves out. Depth and on_full suit the mode that the table names.
func fillDelivery(t *node, w *Wire) {
	d := deliveryOf(w.Payload)
	if t.at("mode") == nil {
		w.Mode = d.mode
	}
	switch {
	case w.Mode == bus.Latest:
		d = newestDelivery
	case d.mode == bus.Latest:
		d = plainDelivery
	}
	if t.at("depth") == nil {
		w.Depth = d.depth
	}
	if t.at("on_full") == nil {
		w.OnFull = d.onFull
	}
}
