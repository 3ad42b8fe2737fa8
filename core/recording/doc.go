// Package recording keeps messages of a running job in a file, with copies of their blocks, and reads them back.
//
//	w, err := recording.NewWriter(file, 1<<30)
//	err = w.Write("rollout.trajectories", "trajectory", m, lease.Bytes(), arena)
//
//	r, err := recording.NewReader(file)
//	for m, err := r.Next(); err == nil; m, err = r.Next() { … }
//
// A recording begins with a line that identifies the format. Frames follow: the length of a JSON document in four bytes, little
// endian, the document, and as many bytes of a block as it says. A document is either the schema of later messages' blocks, or a
// message. It is read strictly: anything unknown is refused, and no allocation is larger than the file.
package recording
