package member

import (
	"encoding/json"
	"errors"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/members"
)

// Codes of errors between hosts.
const (
	CodeListen  control.Code = "E130"
	CodeToken   control.Code = "E131"
	CodeReach   control.Code = "E132"
	CodeOther   control.Code = "E133"
	CodeVersion control.Code = "E134"
	CodeFull    control.Code = "E135"
	CodeRequest control.Code = "E136"
	CodeSilent  control.Code = "E137"
)

// askReply answers a request to join: one of the two.
type askReply struct {
	Grant   *members.Grant `json:"grant,omitempty"`
	Refused *control.Error `json:"refused,omitempty"`
}

// leaseRequest renews or ends a lease.
type leaseRequest struct {
	Incarnation uint64 `json:"incarnation"`
}

// leaseReply answers it.
type leaseReply struct {
	Stranger bool `json:"stranger"`
}

// Verbs of hosts, and what the owner tells all of them.
const (
	verbRenew = "renew"
	verbLeave = "leave"
	tellOver  = "over"
)

// encode writes a message of this package.
func encode[T askReply | leaseRequest | leaseReply | members.Request](v T) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic("member: a message has no JSON: " + err.Error())
	}
	return text
}

// refusal is the error of a request to join, as the host is to read it; nil for one that it does not hear of.
func refusal(err error) *control.Error {
	code, help := CodeRequest, "join with the program rlhost, and a --name without spaces"
	switch {
	case errors.Is(err, members.ErrOld):
		return nil
	case errors.Is(err, members.ErrVersion):
		code, help = CodeVersion, "install one version of rlhost on all hosts"
	case errors.Is(err, members.ErrFull):
		code, help = CodeFull, "wait until a host has left, or train with a higher --hosts"
	}
	e := control.Errorf(code, "%v", err)
	e.Help = help
	return e
}

// unreachable is the error of a connection that did not come about.
func unreachable(t *cluster.Token, err error) *control.Error {
	e := control.Errorf(CodeReach, "no run answers at %s: %v", t.Address, err)
	e.Help = "is the run still there (rlhost status on its host), and does a firewall let the port through? An address before --token-file replaces the token's"
	if errors.Is(err, cluster.ErrCertificate) || errors.Is(err, cluster.ErrKey) {
		e = control.Errorf(CodeOther, "the token is not of the run at %s: %v", t.Address, err)
		e.Help = "a token ends with the process that made it: copy join.token again from the folder of the run that listens there; the token is of " + t.Run
	}
	return e
}
