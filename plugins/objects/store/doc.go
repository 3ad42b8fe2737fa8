// Package store keeps named objects: each a bounded, ordered set of entries, each entry one block in every track of
// its object. Writers fill a block in place and commit it, readers claim what is committed and read it in place.
//
//	s := store.NewStore(store.Limits{})
//	session := s.Session("trainer")
//	id, err := s.Create("obs", store.Config{Capacity: 64, Tracks: []store.Track{{Bytes: 1 << 20}}}, false)
//	write := &store.Op{Kind: store.OpNew, Object: id, Wait: time.Second}
//	err = session.Wait(ctx, write)                  // a block of the session's own: s.Block(id, 0, write.Block)
//	err = session.Wait(ctx, &store.Op{Kind: store.OpCommit, Claim: write.Claim, Values: shapes})
//	read := &store.Op{Kind: store.OpLatest, Object: id}
//	err = session.Wait(ctx, read)                   // read.Views[0], until OpRelease of read.Claim
//
// The truth about every block is in the host's own memory, and only the host changes it: the users of an object are
// many, they come and go, and none of them has to be trusted to count. Whatever a user may do to a block it does by
// a claim, every claim belongs to a session, and the end of a session ends its claims. A block that has any claim on
// it is not reused: deleting, popping and removing only make an entry unreachable.
//
// Nothing polls. An operation that cannot be done yet waits in the store, first come first served, for at most as
// long as it said, and is done by whoever makes it possible.
//
// One lock guards a store: an operation is a few pointer moves, which cost less than any message that asks for one.
// Batches are linear in their length, Stat and Names in what they look at. All methods may be called from any goroutine.
//
// The package moves no bytes between processes (that is plugins/objects), and it does not look into blocks.
package store
