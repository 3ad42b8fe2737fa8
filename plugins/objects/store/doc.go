// Package store keeps named objects: each a bounded, ordered set of entries, each entry one block in every track of
// its object. Writers fill a block in place and commit it, readers claim committed blocks and read them in place.
//
//	s := store.NewStore(store.Limits{})
//	session := s.Session("trainer")
//	id, err := s.Create("obs", wire.Config{Capacity: 64, Tracks: []wire.Track{{Bytes: 1 << 20}}}, false)
//	write := &store.Op{Kind: store.OpNew, Object: id, Wait: time.Second}
//	err = session.Wait(ctx, write)                  // a block of the session's own: write.Block of each track's segment
//	err = session.Wait(ctx, &store.Op{Kind: store.OpCommit, Claim: write.Claim, Values: shapes})
//	read := &store.Op{Kind: store.OpLatest, Object: id}
//	err = session.Wait(ctx, read)                   // read.Views[0], until OpRelease of read.Claim
//
// The state of every block is in the host's own memory, and only the host changes it, so no user of an object is
// trusted to count. A user needs a claim for any use of a block, every claim belongs to a session, and the end of a
// session ends its claims. A claimed block is not reused: deleting, popping and removing only make an entry
// unreachable.
//
// Nothing polls. An operation that is not possible yet waits in the store, in order of arrival, for at most its Wait,
// and is done by the operation that makes it possible.
//
// An entry can be locked, to write it in place: in order of arrival, until its claim ends. The store does not stop users
// that do not lock.
//
// One lock guards a store: an operation is a few pointer moves, cheaper than the message that requests it. Batches are
// linear in their length, Stat and Names in the number of blocks and objects; Grow copies the entries of an object. All
// methods may be called from any goroutine.
//
// The package moves no bytes between processes (that is plugins/objects), and it does not look into blocks.
package store
