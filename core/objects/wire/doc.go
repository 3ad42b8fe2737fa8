// Package wire is what an object store and its users share: objects and values as data, errors, and the frames that they
// exchange over a SOCK_SEQPACKET socket, one a datagram, little endian, at most MaxFrame bytes: a head of HeadBytes and the
// data of its operation.
//
//	frame, err := wire.AppendRequest(nil, &wire.Request{Op: wire.OpPop, Seq: 7, Object: id, Wait: time.Second})
//	err = wire.ParseReply(&reply, frame) // reply.Seq is 7
//
// A client may send requests before it has read the replies to earlier ones; Seq pairs them. A request with OneWay has
// no reply. A reply to OpOpen carries the file of the object.
//
// Parsing takes any bytes: it never panics, and allocates no more than the frame is long. The server decides what a
// frame means and whether it is allowed.
package wire
