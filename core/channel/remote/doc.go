// Package remote serves a channel to other processes of the same user, and reaches one that another process serves.
//
//	server, err := remote.Serve(remote.Options{Name: "jobs", Limits: channel.Limits{Items: 1000}})
//	defer server.Close()
//
//	c, err := remote.Connect("jobs") // there
//	item, err := c.Get(ctx, "default")
//
// The server alone has the state, in a channel.Memory; a client has a SOCK_SEQPACKET connection and asks. So a client that dies is told by
// its socket: what it waited for is forgotten, and what it held is counted as lost. Items of up to MaxInline bytes travel in the frames,
// larger ones in regions: pieces of shared memory that the server owns and clients map once, so that their data is copied by the program
// that makes it and by none that passes it on.
package remote
