package component

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

// Request describes a question that a component answers by its name.
type Request = hostabi.Request

// Question is a request of a Declared component, with its answer. Use Asked.
type Question struct {
	Request
	Handle func(args []byte) (reply []byte, err error)
}

// Asked returns the question of that name: its arguments are the fields of Q, named by tags such as `json:"lr"`, where omitempty or a pointer makes one
// optional. fn is called between two messages; it answers with a value that encoding/json can write, or an error.
func Asked[Q, R any](name, doc string, fn func(q Q) (R, error)) Question {
	return Question{Request{Name: name, Doc: doc, Args: hostabi.RequestArgs[Q]()}, Answer(fn)}
}

// Answer returns a function for Host.Handle that fills a Q from the arguments, and answers with fn's result.
func Answer[Q, R any](fn func(q Q) (R, error)) func(args []byte) (reply []byte, err error) {
	return func(args []byte) ([]byte, error) {
		var q Q
		if err := json.Unmarshal(args, &q); err != nil {
			return nil, err
		}
		r, err := fn(q)
		if err != nil {
			return nil, err
		}
		return json.Marshal(r)
	}
}

// Errors of questions to other components.
var (
	ErrLate = errors.New("it did not answer in time")
	ErrLost = errors.New("it has ended before it answered")
)

// Asking returns the description of a question with the fields of Q as its arguments, for the list Asks of a Declared or of a Manifest.
func Asking[Q any](name, doc string) Request {
	return Request{Name: name, Doc: doc, Args: hostabi.RequestArgs[Q]()}
}

// Ask asks a question with the fields of q as its arguments, and has fn called with the answer; see Host.Request.
func Ask[Q, R any](h Host, ask string, q Q, within time.Duration, fn func(r R, err error)) {
	args, err := json.Marshal(q)
	if err != nil {
		var none R
		fn(none, err)
		return
	}
	h.Request(ask, args, within, func(reply []byte, err error) {
		var r R
		if err == nil {
			err = json.Unmarshal(reply, &r)
		}
		fn(r, err)
	})
}
