package hostabi

import (
	"fmt"
	"reflect"
	"strings"
)

// Request describes a question that a component answers: its name and its arguments.
type Request struct {
	Name string       `json:"name"` // snake_case
	Doc  string       `json:"doc,omitempty"`
	Args []RequestArg `json:"args,omitempty"`
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
	RequestInteger RequestType = "integer" // also 3.0
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

// String returns the request as a user writes about it: set_lr(lr number, warm bool?).
func (r *Request) String() string {
	args := make([]string, len(r.Args))
	for i, a := range r.Args {
		args[i] = a.Name + " " + string(a.Type)
		if a.Optional {
			args[i] += "?"
		}
	}
	return r.Name + "(" + strings.Join(args, ", ") + ")"
}

// RequestArgs returns the arguments that a struct is filled from: its exported fields, named by tags such as `json:"lr"`. A field with omitempty or of
// a pointer type is optional; a tag doc:"…" describes it.
func RequestArgs[Q any]() []RequestArg {
	t := reflect.TypeFor[Q]()
	var args []RequestArg
	for i := range t.NumField() {
		f := t.Field(i)
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		a := RequestArg{Name: name, Doc: f.Tag.Get("doc"), Optional: strings.Contains(rest, "omitempty")}
		of := f.Type
		if of.Kind() == reflect.Pointer {
			a.Optional, of = true, of.Elem()
		}
		a.Type = requestTypeOf(of)
		args = append(args, a)
	}
	return args
}

func requestTypeOf(t reflect.Type) RequestType {
	switch t.Kind() {
	case reflect.Bool:
		return RequestBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return RequestInteger
	case reflect.Float32, reflect.Float64:
		return RequestNumber
	case reflect.String:
		return RequestText
	case reflect.Slice, reflect.Array:
		return RequestList
	case reflect.Map, reflect.Struct:
		return RequestTable
	}
	return RequestAny
}

// CheckRequests returns an error unless the requests can belong to one component: names of small letters, digits and _, each once, and known types.
func CheckRequests(list []Request) error {
	if len(list) > MaxRequests {
		return fmt.Errorf("it answers %d requests, at most %d", len(list), MaxRequests)
	}
	seen := map[string]bool{}
	for i := range list {
		r := &list[i]
		if !isRequestName(r.Name) {
			return fmt.Errorf("a request is called %q, want small letters, digits and _", r.Name)
		}
		if seen[r.Name] {
			return fmt.Errorf("the request %s is there twice", r.Name)
		}
		seen[r.Name] = true
		if err := r.checkArgs(); err != nil {
			return fmt.Errorf("the request %s %w", r.Name, err)
		}
	}
	return nil
}

func (r *Request) checkArgs() error {
	seen := map[string]bool{}
	for _, a := range r.Args {
		switch a.Type {
		case RequestBool, RequestInteger, RequestNumber, RequestText, RequestList, RequestTable, RequestAny:
		default:
			return fmt.Errorf("has an argument %s of the type %q", a.Name, a.Type)
		}
		if a.Name == "" || seen[a.Name] {
			return fmt.Errorf("has an argument %q twice or without a name", a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}

// maxRequestName bounds the name of a request.
const maxRequestName = 64

func isRequestName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || i > 0 && (c >= '0' && c <= '9' || c == '_')) {
			return false
		}
	}
	return name != "" && len(name) <= maxRequestName
}
