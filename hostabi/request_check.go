//go:build !wasip1

package hostabi

import "fmt"

// String returns the request as a user writes about it: set_lr(lr number, warm bool?).
func (r *Request) String() string { return r.Name + "(" + r.argsText() + ")" }

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
			return unknown("has an argument %s of the type %q", a.Name, a.Type)
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
