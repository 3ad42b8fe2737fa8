package control

import "fmt"

// Code says what kind of error a request ended with. Each has a page in rlhost explain.
type Code string

// Codes.
const (
	CodeNoJob      Code = "E070" // no job runs there
	CodeUnknown    Code = "E071" // no such component, wire or verb
	CodeBusy       Code = "E072" // another change is under way
	CodeForbidden  Code = "E073" // swap = "never", or another user
	CodeSpaces     Code = "E074" // spaces or network differ
	CodeTrial      Code = "E075" // the trial failed
	CodeLate       Code = "E076" // the boundary did not come in time
	CodeProtocol   Code = "E077" // client and job speak different versions
	CodeRefused    Code = "E078" // this change cannot be made during the run
	CodeBad        Code = "E079" // the request makes no sense
	CodeEnded      Code = "E080" // the run ended meanwhile
	CodeRolledBack Code = "E081" // the new version failed and the previous one runs again
	CodeFailed     Code = "E082" // it could not be done; nothing has changed
	CodeRequest    Code = "E120" // the component does not answer that request
	CodeArgs       Code = "E121" // the arguments do not fit the request
	CodeRaised     Code = "E122" // the handler has failed
	CodeUnanswered Code = "E123" // the handler did not answer in time
	CodeReply      Code = "E124" // the answer is none: no JSON, or too long
	CodeLost       Code = "E125" // the component ended before it answered
	CodeUndoes     Code = "E091" // the reload would take back a version that was swapped in
)

// Error is the answer to a failed request. Reason says what happened and which version runs now.
type Error struct {
	Code   Code   `json:"code"`
	Reason string `json:"reason"`
	Help   string `json:"help,omitempty"`
	// Type and Place are of an error that a component's handler has raised: ValueError, train.py:40. Reason is its text.
	Type  string `json:"type,omitempty"`
	Place string `json:"place,omitempty"`
	// Problems are a file's problems, as rlhost validate shows them.
	Problems string `json:"problems,omitempty"`
	// Exit is the command's exit status; 0 means 1.
	Exit int `json:"exit,omitempty"`
}

// Error returns the reason.
func (e *Error) Error() string { return e.Reason }

// Errorf makes an Error without help.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Reason: fmt.Sprintf(format, args...)}
}
