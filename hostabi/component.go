package hostabi

// Names of component ABI v1. Pointers and lengths are i32, results are a Status or a non-negative value.
//
// A component is a reactor, as an environment is. The host calls _initialize once, perhaps rl_host, rl_configure, rl_manifest, rl_start, perhaps
// rl_restore, then rl_slot, rl_timer, rl_answer, rl_request and rl_snapshot, one at a time; none of them from within an import.
const (
	// ExportComponentABI is the marker of the version. It is looked for, never called.
	ExportComponentABI = "rl_component_v1"
	// ExportComponentPrefix begins the marker of any version.
	ExportComponentPrefix = "rl_component_v"

	// ExportConfigure: (config, len) -> status. Reads and checks the component's table: UTF-8 lines "key=value\n", sorted by key,
	// nested keys joined with dots, elements of a list with commas. StatusConfig refuses it; rl_last_error then has lines
	// "key: reason". The table may change what rl_manifest says.
	ExportConfigure = "rl_configure"
	// ExportManifest: (buf, cap) -> needed length. Writes ComponentSpec and what follows it, or nothing if cap is too small.
	ExportManifest = "rl_manifest"
	// ExportStartUp: (identity, len) -> status. Called once with an Identity of len bytes, followed by its name. Messages come after it.
	ExportStartUp = "rl_start"
	// ExportSlot: (slot, message) -> status. Handles a message of a slot, by the slot's index in the manifest. ComponentMessage
	// and the memory that it points to are the guest's to read until it returns. A negative status ends the run with rl_last_error's text.
	ExportSlot = "rl_slot"
	// ExportTimer (optional): (timer) -> status. A timer's time has come.
	ExportTimer = "rl_timer"
	// ExportPause (optional): () -> status. Finishes the work that the component has begun and begins none. Until rl_resume nothing
	// but rl_snapshot, rl_request and rl_stop is called. A component that has nothing under way between two calls needs none.
	ExportPause = "rl_pause"
	// ExportResume (optional): () -> status. Ends a pause.
	ExportResume = "rl_resume"
	// ExportSnapshot (optional): (buf, cap) -> needed length. All that rl_restore needs to continue as if nothing had happened, in a
	// format of the component's own. A component without it begins from scratch when it is replaced or resumed.
	ExportSnapshot = "rl_snapshot"
	// ExportRestore (optional, with ExportSnapshot): (buf, len) -> status. Called after rl_start, before the first message.
	// StatusVersion for a state of a version that the component does not read.
	ExportRestore = "rl_restore"
	// ExportStop (optional): () -> status. The last call. The host takes back leased blocks.
	ExportStop = "rl_stop"
	// ExportRequest (optional): (request, len, buf, cap) -> length of the answer. Answers a RequestCall, which is followed by its
	// arguments, with a JSON value in buf, whose cap is the longest that an answer may be. A negative status is the request's error,
	// with rl_last_error's text. It must be there where the manifest has requests; a host of 1.0 does not call it.
	ExportRequest = "rl_request"
	// ExportAnswer (optional): (answer, len) -> status. Gets the answer to a question that the component has asked with
	// rl_component.ask: an AnswerCall, then its texts. It must be there where the manifest has asks; a host of 1.1 does not call it.
	ExportAnswer = "rl_answer"
)

// ImportComponent is the module that a component imports host functions from. A function never calls the guest: emit puts the
// message into queues.
const (
	ImportComponent = "rl_component"

	// ImportEmit: (signal, message) -> outcome. Sends a ComponentMessage on a signal, by its index in the manifest: Outcome, or a
	// negative Status. It never waits. The block may be released afterwards.
	ImportEmit = "emit"
	// ImportLease: (block) -> status. Keeps the block of a message in place beyond its slot: bound columns stay valid until
	// rl_component.release. Each lease of a block is ended by one release.
	ImportLease = "lease"
	// ImportRelease: (block) -> status. Ends a lease.
	ImportRelease = "release"
	// ImportColumn: (block, name, len, access, column) -> status. Writes a ColumnBinding for a column by its name, of the block of the
	// message that is being handled or a leased one. access is 0 or ColumnWrite.
	ImportColumn = "column"
	// ImportDeclare: (kind, name, len) -> metric. Declares a number of the component's by its MetricKind and a name such as
	// shaper/reward; the same again is the same metric.
	ImportDeclare = "declare"
	// ImportReport: (metric, value f64). Adds to a counter, sets a gauge, or counts a value in a histogram.
	ImportReport = "report"
	// ImportTimer: (after i64, every i64) -> timer. Makes rl_timer be called after nanoseconds, and then every so often unless that
	// is 0.
	ImportTimer = "timer"
	// ImportCancel: (timer) -> status. Ends a timer; StatusState if it is over.
	ImportCancel = "cancel"
	// ImportStop: (reason) -> status. Asks the run to end at the next dataset boundary, for a StopReason.
	ImportStop = "stop"
	// ImportAsk: (ask, args, len, within i64) -> question. Asks another component one of the manifest's asks, by its index, with a JSON
	// object; no bytes are an object without members. rl_answer is called later, once, with the number that is returned, at the latest
	// after that many nanoseconds, which are half a minute where it is 0. StatusMemory: too many questions have no answer yet.
	ImportAsk = "ask"
)

// ComponentExports returns the functions of component ABI v1 that a guest exports, in the order of its life.
func ComponentExports() []Function {
	return []Function{
		{ExportComponentABI, nil, nil, true},
		{ExportInitialize, nil, nil, false},
		{ExportHost, i32s(2), i32s(1), false},
		{ExportAlloc, i32s(2), i32s(1), true},
		{ExportFree, i32s(2), nil, true},
		{ExportConfigure, i32s(2), i32s(1), true},
		{ExportManifest, i32s(2), i32s(1), true},
		{ExportStartUp, i32s(2), i32s(1), true},
		{ExportSlot, i32s(2), i32s(1), true},
		{ExportTimer, i32s(1), i32s(1), false},
		{ExportPause, nil, i32s(1), false},
		{ExportResume, nil, i32s(1), false},
		{ExportSnapshot, i32s(2), i32s(1), false},
		{ExportRestore, i32s(2), i32s(1), false},
		{ExportStop, nil, i32s(1), false},
		{ExportRequest, i32s(4), i32s(1), false},
		{ExportAnswer, i32s(2), i32s(1), false},
		{ExportLastError, i32s(2), i32s(1), false},
	}
}

// ComponentImports returns the host functions of ImportComponent.
func ComponentImports() []Function {
	return []Function{
		{ImportEmit, i32s(2), i32s(1), false},
		{ImportLease, i32s(1), i32s(1), false},
		{ImportRelease, i32s(1), i32s(1), false},
		{ImportColumn, i32s(5), i32s(1), false},
		{ImportDeclare, i32s(3), i32s(1), false},
		{ImportReport, []ValueType{TypeI32, TypeF64}, nil, false},
		{ImportTimer, []ValueType{TypeI64, TypeI64}, i32s(1), false},
		{ImportCancel, i32s(1), i32s(1), false},
		{ImportStop, i32s(1), i32s(1), false},
		{ImportLog, i32s(3), nil, false},
		{ImportLogEnabled, i32s(1), i32s(1), false},
		{ImportAsk, []ValueType{TypeI32, TypeI32, TypeI32, TypeI64}, i32s(1), false},
	}
}
