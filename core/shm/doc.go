// Package shm provides memory that several mappings can share: sealed, pre-populated memfd segments.
//
//	seg, err := shm.Create("trajectories", 64<<20)
//	if err != nil {
//		return err
//	}
//	defer seg.Close()
//	use(seg.Bytes(), seg.FD())
//
// A segment can be neither shrunk nor grown, so a mapping of it never faults because somebody cut the file, and
// all its pages exist before Create returns, so running out of memory is an error at the start and not a signal
// later. Create needs Linux; Heap makes a segment of ordinary Go memory, which the race detector can see.
//
// The package does not know what lies in a segment (that is core/arena and core/ring) and it does not wake
// anybody up.
package shm
