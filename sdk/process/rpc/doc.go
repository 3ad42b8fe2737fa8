// Package rpc is the plugin's end of its control connection: it answers unary gRPC calls over HTTP/2 at a unix socket,
// with what go-plugin's hosts ask for besides.
//
//	s, err := rpc.Listen(rpc.Config{Dir: dir, Service: "rlhost.plugin.v1.Plugin", MaxCall: 16 << 20, Call: call})
//	fmt.Println(s.Line(native.Version))
//	err = s.Serve() // until the host shuts it down
//
// Requests and replies are google.protobuf.BytesValue. HTTP/2 is golang.org/x/net/http2's, the encoding is protowire's;
// what is here is the few lines of gRPC between them. A plugin answers a handful of calls in its life, and most of what
// they used to take was the time in which the kernel and Go set up the packages of gRPC, protobuf's messages and
// go-plugin in a new process.
//
// It is no server for a network: whoever can connect is believed to be the host. What it sends cannot crash or hang the
// plugin, though, and its memory is bounded: requests that are too long, too many, or not HTTP/2 are refused.
package rpc
