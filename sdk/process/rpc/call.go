package rpc

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
)

// Further calls of go-plugin's hosts.
const (
	healthCheck = "/grpc.health.v1.Health/Check"
	shutdown    = "/plugin.GRPCController/Shutdown"
	// Two streams that they hold open from the start, for a plugin's output and for more connections. Ours has neither.
	stdioStream  = "/plugin.GRPCStdio/StreamStdio"
	brokerStream = "/plugin.GRPCBroker/StartStream"
)

// serving is grpc.health.v1.HealthCheckResponse with status 1.
var serving = []byte{0, 0, 0, 0, 2, 1 << 3, 1}

// ServeHTTP answers one call: headers, the message, and the status as a trailer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	if r.URL.Path == stdioStream || r.URL.Path == brokerStream {
		s.hold(w, r)
		return
	}
	message, err := s.answer(r)
	code, text := 0, ""
	if err != nil {
		e := &Error{Code: codeUnknown, Message: err.Error()}
		errors.As(err, &e)
		code, text = e.Code, e.Message
	}
	if err == nil {
		_, _ = w.Write(message) // the host may have gone
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(code))
	if text != "" {
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", escape(text))
	}
	if r.URL.Path == shutdown {
		s.end.Do(func() { close(s.over) })
	}
}

// hold starts an answer and keeps it open until the host or the server ends it.
func (s *Server) hold(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	select {
	case <-r.Context().Done():
	case <-s.over:
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
}

// answer returns the reply to a call as a gRPC message.
func (s *Server) answer(r *http.Request) ([]byte, error) {
	switch r.URL.Path {
	case healthCheck:
		return serving, nil
	case shutdown:
		return wrap(nil), nil
	}
	method, ours := strings.CutPrefix(r.URL.Path, "/"+s.config.Service+"/")
	if !ours {
		return nil, &Error{Code: codeUnimplemented, Message: "unknown method " + r.URL.Path}
	}
	message, err := read(r.Body, s.config.MaxCall)
	if err != nil {
		return nil, err
	}
	request, err := unwrap(message)
	if err != nil {
		return nil, &Error{Code: codeInvalid, Message: err.Error()}
	}
	reply, err := s.config.Call(r.Context(), method, request)
	if err != nil {
		return nil, err
	}
	return wrap(reply), nil
}
