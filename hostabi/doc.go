// Package hostabi holds the values that the host and its plugins exchange: handles, messages, tensor
// descriptions, status codes, versions, and the names and signatures of every guest export and import.
//
// It is the single source of these layouts. The C, Rust and other views are generated from it, and a size
// test holds each struct to the bytes stated in its comment. All values are little endian.
//
// It imports nothing of rlhost and builds for wasip1, so that a guest written in Go uses these very types; what reads and
// checks a guest's description is left out there.
// Behaviour does not belong here: who may follow a Handle is core/arena's business, how a Message travels is
// core/bus's.
package hostabi
