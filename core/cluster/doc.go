// Package cluster is what the hosts of a run talk through: NATS, which this package alone imports. Server is one in this process; Connect reaches
// it, or a cluster that somebody else runs. Names is the back end of package registry for several hosts.
//
//	server, err := cluster.Serve(cluster.ServerOptions{Address: "127.0.0.1:0", Folder: dir})
//	defer server.Close()
//	link, err := cluster.Connect(ctx, cluster.LinkOptions{Server: server})
//	defer link.Close()
//	names, err := cluster.NewNames(ctx, link, "run-7")
//
// Outgoing and Incoming bring blocks from one host to another by the rules of package relay: each once, or counted.
//
// An External is a cluster that somebody else runs, with rules of its own about who may speak; a run there has subjects with a prefix of its own.
//
// Names are in the server's memory: a server that starts again has forgotten them. Each Link notices that it talks to another life of the server,
// and its watches then tell what is gone and what is new, within a second; the library alone takes twenty.
package cluster
