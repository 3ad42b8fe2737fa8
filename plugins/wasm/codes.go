package wasm

// Codes of the errors of modules that cannot be used. They are stable: rlhost explain tells more about each.
const (
	CodeMissing     = "E012" // no such file, or it cannot be read
	CodeCommand     = "E013" // a command module: something to run once, not to step
	CodeFormat      = "E014" // not a WebAssembly module, or a damaged one
	CodeExport      = "E015" // a required export is missing or has another signature
	CodeImport      = "E016" // an import is not granted or does not exist
	CodeFeature     = "E017" // the module needs something that this runtime does not offer
	CodeDescription = "E018" // the guest's description is not accepted; wraps hostabi.ErrSpec
	CodeStart       = "E019" // the guest failed before its first environment
	CodeFuture      = "E050" // the module speaks a later version of the ABI
)
