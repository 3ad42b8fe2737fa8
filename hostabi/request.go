package hostabi

import "strings"

// Request describes a question that a component answers: its name and its arguments.
type Request struct {
	Name string       `json:"name"` // snake_case
	Doc  string       `json:"doc,omitempty"`
	Args []RequestArg `json:"args,omitempty"`
}

// argsText returns the arguments as a manifest has them: lr number, warm bool?
func (r *Request) argsText() string {
	args := make([]string, len(r.Args))
	for i, a := range r.Args {
		args[i] = a.Name + " " + string(a.Type)
		if a.Optional {
			args[i] += "?"
		}
	}
	return strings.Join(args, ", ")
}

// RequestArg is an argument of a request.
type RequestArg struct {
	Name     string      `json:"name"`
	Type     RequestType `json:"type"`
	Optional bool        `json:"optional,omitempty"`
	Doc      string      `json:"doc,omitempty"`
}

// RequestType says which JSON values an argument takes.
type RequestType string

// Types of arguments.
const (
	RequestBool    RequestType = "bool"
	RequestInteger RequestType = "integer" // written without a point and an exponent: 3, and neither 3.0 nor 3e0
	RequestNumber  RequestType = "number"
	RequestText    RequestType = "text"
	RequestList    RequestType = "list"
	RequestTable   RequestType = "table"
	RequestAny     RequestType = "any"
)

// Limits on requests.
const (
	MaxRequests     = 256       // that one component answers
	MaxRequestBytes = 120 << 10 // of arguments as JSON, and of an answer
)
