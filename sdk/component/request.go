package component

import (
	"encoding/json"
	"errors"
	"fmt"
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

// Errors of questions to other components, which an Unanswered wraps.
var (
	ErrLate = errors.New("it did not answer in time")
	ErrLost = errors.New("it has ended before it answered")
)

// Unanswered is the error of a question without an answer.
type Unanswered struct {
	Code        string // that users see, such as E122
	Text        string
	Type, Place string // of an error of the other component, such as ValueError and coach.py:12
}

// NoAnswer returns the error that a fault stands for. Hosts call it.
func NoAnswer(fault hostabi.AnswerFault, kind, text, place string) *Unanswered {
	return &Unanswered{Code: fmt.Sprintf("E%03d", fault), Text: text, Type: kind, Place: place}
}

// Error returns the type, where there is one, and the text.
func (e *Unanswered) Error() string {
	if e.Type == "" {
		return e.Text
	}
	return e.Type + ": " + e.Text
}

// Unwrap returns ErrLate or ErrLost, or nil.
func (e *Unanswered) Unwrap() error {
	switch e.Code {
	case "E123":
		return ErrLate
	case "E125":
		return ErrLost
	}
	return nil
}

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
