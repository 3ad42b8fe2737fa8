package hostabi

import "strconv"

// Status is the result of a guest export: zero or a non-negative result, or one of the negative codes below.
type Status int32

// Status codes of both ABIs. The number -6 is reserved.
const (
	StatusOK          Status = 0
	StatusArgument    Status = -1   // an argument is out of range
	StatusMemory      Status = -2   // the guest is out of memory
	StatusState       Status = -3   // the call is not allowed now
	StatusUnsupported Status = -4   // the guest does not offer this
	StatusConfig      Status = -5   // the configuration is not accepted
	StatusAction      Status = -7   // an action is outside its space
	StatusVersion     Status = -9   // a saved state of another version
	StatusDenied      Status = -10  // the pipeline does not grant this
	StatusInternal    Status = -128 // anything else; rl_last_error says what
)

var statusText = map[Status]string{
	StatusOK:          "ok",
	StatusArgument:    "argument out of range",
	StatusMemory:      "out of memory",
	StatusState:       "call not allowed in this state",
	StatusUnsupported: "not supported",
	StatusConfig:      "configuration not accepted",
	StatusAction:      "action outside its space",
	StatusVersion:     "saved state of another version",
	StatusDenied:      "not granted",
	StatusInternal:    "internal error",
}

// String returns the meaning of the code.
func (s Status) String() string {
	if text, ok := statusText[s]; ok {
		return text
	}
	if s > 0 {
		return strconv.Itoa(int(s)) + ", where a status is 0 or negative"
	}
	return "status " + strconv.Itoa(int(s)) + ", which the ABI does not have"
}
