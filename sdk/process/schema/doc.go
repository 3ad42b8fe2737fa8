// Package schema translates what arenas say of their blocks between the host's memory and the control protocol.
//
//	doc := schema.Encode(a.Schema())       // to be sent with an arena
//	s, err := schema.Decode(doc, a.BlockBytes())
//	tr, ok := s.(*trajectory.Schema)
//
// What it cannot translate it leaves out: such blocks are bytes to the other process.
package schema
