// Package rpc is the plugin's end of its control connection: it answers unary gRPC calls over HTTP/2 at a unix socket,
// and the further calls of go-plugin's hosts.
//
//	s, err := rpc.Listen(rpc.Config{Dir: dir, Service: "rlhost.plugin.v1.Plugin", MaxCall: 16 << 20, Call: call})
//	fmt.Println(s.Line(native.Version))
//	err = s.Serve() // until the host shuts it down
//
// Requests and replies are google.protobuf.BytesValue. HTTP/2 is golang.org/x/net/http2's, the encoding is protowire's;
// this package has the few lines of gRPC between them. A plugin answers a handful of calls, and importing gRPC,
// protobuf and go-plugin would cost more in a new process than the calls.
//
// It is not a network server: it trusts every peer to be the host. Its requests cannot crash or hang the plugin,
// though, and memory is bounded: requests that are too long, too many, or not HTTP/2 are refused.
package rpc
