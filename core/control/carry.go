package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"

	"github.com/rlhost/rlhost/core/ipc"
)

// Codes of requests from a machine that has joined a run.
const (
	CodeHere Code = "E160" // the verb is for the run's own machine
	CodeCut  Code = "E161" // the run does not answer that machine
)

// Line is a connection with another machine that keeps the boundaries of messages. Send and Receive may be called from different goroutines; Close
// ends both, at both ends.
type Line interface {
	Send(message []byte) error
	Receive() ([]byte, error)
	Close() error
}

// ServeLines serves a socket at path, as Listen does, to programs of this user that mean a job on another machine: each connection gets a line to
// there, where Carry has its other end.
func ServeLines(path string, log *slog.Logger, open func() (Line, error)) (*Server, error) {
	return ipc.Listen(ipc.Config{
		Name: "a job elsewhere", Path: path, Network: "unix", Clients: defaultClients, Ended: errClosing, Log: log,
		Serve: func(_ context.Context, c *ipc.Conn) {
			line, err := open()
			if err != nil {
				refuseWith(c, cut(err))
				return
			}
			join(c, line, nil)
		},
		Refuse: func(c *ipc.Conn, err error) { refuse(c, defaultClients, err) },
	})
}

func cut(err error) *Error {
	e := Errorf(CodeCut, "the run does not answer this machine: %v", err)
	e.Help = "rlhost join says when it is back; see whether the run lasts, and the network between both machines"
	return e
}

// Carry joins a line from another machine with the job that listens at path here, until either ends. Other verbs than these are refused.
func Carry(path string, line Line, verbs ...Verb) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		refuseLine(line, dialError(path, err))
		return
	}
	defer conn.Close() // the job may have closed it first
	join(conn, line, verbs)
}

// join carries frames both ways until either end is closed. Where verbs are named, only these come from the line.
func join(conn net.Conn, line Line, verbs []Verb) {
	var both sync.WaitGroup
	both.Go(func() {
		defer line.Close() // it never fails
		in := bufio.NewReader(conn)
		for {
			body, err := readFrame(in)
			if err != nil || line.Send(body) != nil {
				return
			}
		}
	})
	for {
		body, err := line.Receive()
		if err == nil && verbs != nil {
			body, err = permitted(body, line, verbs)
		}
		if err == nil && body != nil {
			err = writeFrame(conn, headed(body))
		}
		if err != nil {
			break
		}
	}
	_ = conn.Close() // ends the other direction
	both.Wait()
}

// permitted returns a frame as the job gets it, or nil where it has been refused. The first one of a client, its hello, has no verb.
func permitted(body []byte, line Line, verbs []Verb) ([]byte, error) {
	var q struct {
		hello
		ask
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, err
	}
	switch {
	case q.Verb == "" && q.Protocol != 0:
		return json.Marshal(q.hello)
	case slices.Contains(verbs, q.Verb):
		return json.Marshal(q.ask) // as it was understood here
	}
	e := Errorf(CodeHere, "%q is for the run's own machine", q.Verb)
	e.Help = "a machine that has joined may ask for status and make requests of components; use rlhost where the run is"
	return nil, sendAnswer(line, e)
}

func sendAnswer(line Line, e *Error) error {
	body, err := json.Marshal(answer{Error: e})
	if err != nil {
		return err
	}
	return line.Send(body)
}

// refuseLine tells a client at the other end of a line why it is not served.
func refuseLine(line Line, why error) {
	defer line.Close() // it never fails
	var e *Error
	if !errors.As(why, &e) {
		e = Errorf(CodeNoJob, "%v", why)
	}
	body, err := json.Marshal(hello{Protocol})
	if err == nil {
		err = errors.Join(line.Send(body), sendAnswer(line, e))
	}
	if err == nil {
		_, _ = line.Receive() // its hello: it has the answer afterwards
	}
}
