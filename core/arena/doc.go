// Package arena owns shared memory in equal blocks, and defines who may write or read which block, and until when.
//
//	arenas := arena.NewSet()
//	a, err := arenas.Add(arena.Config{Name: "trajectories", Blocks: 16, BlockBytes: 1 << 20})
//	loan, err := a.Loan()              // the only writer
//	fill(loan.Bytes())
//	handle, err := loan.Commit()       // readable from now on; the committer holds one claim
//	lease, err := arenas.Lease(handle) // another reader, later: a claim of its own
//	read(lease.Bytes())
//	err = lease.Release()
//	err = arenas.Release(handle)       // the last claim frees the block: the handle is stale from now on
//
// Other processes work on the same blocks. The host grants each a holder number and shares its arenas; the process
// attaches, and sends handles and credits over a link of its own:
//
//	holder, err := arenas.Grant()                // host
//	cancel := arenas.Watch(announce)             // sends a.Share() and duplicates of its two files
//	peers := arena.NewPeerSet(holder, askHost)   // the other process
//	a, err := peers.Attach(shared)
//	swept, err := arenas.Sweep(holder)           // host, once the process has ended
//
// A block is FREE, WRITE (on loan to one writer), LIVE (committed, leased by any number of readers) or ZOMBIE
// (revoked, kept for its remaining readers). Generation, state and the processes that hold the block are one
// 64-bit word in shared memory, and every transition is one compare-and-swap of it. So nothing is ever half done,
// and the blocks of an ended process are found by a mask. The claims within a process share its one bit in that
// word; a private counter, tagged with the generation, counts them.
//
// The words can be written by every process that attaches, so the host believes them only as far as its own counters
// do not contradict. Whatever the words contain, no operation panics, hangs or releases a claim of the host, and
// Sweep repairs the damage of an ended process. Until then such a process can damage blocks that other processes
// hold, and keep free ones from being loaned.
//
// A handle is a number that anyone can forge. Every use of one is checked against the word, and a handle that
// does not name the block's present generation is an error, never a wrong read.
//
// All methods may be called from any goroutine unless they say otherwise. Only creating, attaching, closing and
// sweeping arenas block, and Set.Of outside the host. A watcher runs under the lock of its Set; no other callback runs
// under any lock. Built with the tag invariants, the package fills freed blocks with NaNs, remembers the stack of every
// loan and lease, and finds each release of a claim that was released before.
//
// The package does not know what a block contains (core/trajectory), does not carry handles (core/bus) and does
// not decide how many blocks are enough.
package arena
