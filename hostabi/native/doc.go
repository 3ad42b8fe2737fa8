// Package native is the control protocol of native plugins, version 2: how a plugin process is started, what it
// inherits, the calls of its control service, and the frames of the wire socket.
//
// A plugin is started by hashicorp/go-plugin with the environment variable Cookie, and answers with go-plugin's
// handshake line on standard output. Control calls are unary gRPC calls of Service; request and reply are
// google.protobuf.BytesValue messages that hold one JSON document each, so that no language needs generated code.
// A call that the plugin refuses ends in one of the gRPC codes CodeInvalid and following, with a message for people.
//
// Data never passes through gRPC. The process inherits the wire and the files of its transport, whose name is in the
// environment variable TransportKey and again in the plugin's Description; of TransportRings:
//
//	FDWire    a SOCK_SEQPACKET socket: frames of JSON, with files attached (arenas, states)
//	FDIn      ring of hostabi.Messages from the host
//	FDOut     ring of hostabi.Messages to the host
//
// When the other end of the wire closes, the host is gone and the plugin ends itself. The life of a component is
//
//	Describe  →  Configure  →  Start  →  [Restore]  →  messages, Snapshot, Pause, Resume  →  [Waiting]  →  Stop
//
// and that of a worker of environments
//
//	Describe  →  EnvLoad  →  EnvMake  →  bind, reset, step over the rings  →  Stop
//
// A saved state is the bytes of component.EncodeState: "RLSTATE1", the length of a head as u64, the head as JSON
// {"meta": any, "tensors": [{"name", "shape"}], "blobs": [{"name", "bytes"}]}, then the tensors' float32 elements and
// the blobs in the order of the head without gaps, all little endian. Other bytes are one blob named "state". A state
// is sent on the wire before the reply of Snapshot, and before the call of Restore, with the same Call number, which
// its sender counts up.
//
// The package holds names and documents. plugins/process sends them; sdk/process answers, and in other languages sdk/c
// and sdk/python.
package native
