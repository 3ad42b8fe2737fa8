// Package protocol is the control protocol of native plugins, version 1: how a plugin process is started, what it
// inherits, the calls of its control service, and the frames of the wire socket.
//
// A plugin is started by hashicorp/go-plugin with the environment variable Cookie, and answers with go-plugin's
// handshake line on standard output. Control calls are unary gRPC calls of Service; request and reply are
// google.protobuf.BytesValue messages that hold one JSON document each, so that no language needs generated code.
// A call that the plugin refuses ends in the gRPC code of its kind (see Code) with a message for people.
//
// Data never passes through gRPC. The process inherits three files:
//
//	FDWire    a SOCK_SEQPACKET socket: frames of JSON, with files attached (arenas, states)
//	FDIn      ring of hostabi.Messages from the host
//	FDOut     ring of hostabi.Messages to the host
//
// When the other end of the wire closes, the host is gone and the plugin ends itself. The life of a component is
//
//	Describe  →  Configure  →  Start  →  [Restore]  →  messages, Snapshot  →  Stop
//
// and that of a worker of environments
//
//	Describe  →  EnvLoad  →  EnvMake  →  bind, reset, step over the rings  →  Stop
//
// The package holds names and documents. Who sends them is plugins/process; who answers is sdk/process, and in
// other languages sdk/c and sdk/python.
package protocol
