// Package objects serves an object store (plugins/objects/store) to the processes of one user on one machine.
//
//	err := objects.Serve(ctx, objects.Options{}) // until ctx ends
//
// A client connects to a socket of core/ipc, which serves this user alone. Requests and replies are
// core/objects/wire's; the memory of an object reaches a client once, as a file with the reply to its first request
// for the object, and no data travels through the socket. A client's claims belong to its connection: they are
// released when it ends, for any reason.
//
// Component is the same as a node of a pipeline. The clients are sdk/objects and rlhost.objects in sdk/python.
//
// A client of the same user that maps an object to write can write to any block of it; the server protects users
// from each other's crashes and mistakes in counting, not from malice, and itself from both.
package objects
