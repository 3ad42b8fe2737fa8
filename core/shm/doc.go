// Package shm is what processes need to share memory: sealed, pre-populated memfd segments, sleeping and waking on
// words in them, and sockets that carry their files to another process.
//
//	seg, err := shm.Create("trajectories", 64<<20)
//	if err != nil {
//		return err
//	}
//	defer seg.Close()
//	err = socket.Send(document, seg.FD()) // there: n, files, err := socket.Receive(buf); shm.Open(int(files[0].Fd()), …)
//
// A segment can be neither shrunk nor grown, so a mapping of it never faults because the file was truncated,
// and all its pages exist before Create returns, so running out of memory is an error at the start and not a
// signal later. Open rejects other files. Only the creator can write to a segment of CreateReadOnly. Core dumps
// contain no segments.
//
// All this needs Linux; elsewhere it returns ErrUnsupported. Heap makes a segment of ordinary Go memory, which the
// race detector can see.
//
// The package does not know what a segment contains (core/arena, core/ring) nor what a document says, and it trusts
// no peer: a Receive can cost memory and files only for as long as it runs.
package shm
