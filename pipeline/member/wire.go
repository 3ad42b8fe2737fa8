package member

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/rlhost/rlhost/core/cluster"
	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/members"

	"github.com/rlhost/rlhost/hostabi/native"
)

// Codes of errors between hosts.
const (
	CodeListen     control.Code = "E130"
	CodeToken      control.Code = "E131"
	CodeReach      control.Code = "E132"
	CodeOther      control.Code = "E133"
	CodeVersion    control.Code = "E134"
	CodeFull       control.Code = "E135"
	CodeRequest    control.Code = "E136"
	CodePart       control.Code = "R018"
	CodeKernels    control.Code = "R024"
	CodeSilent     control.Code = "E137"
	CodeNext       control.Code = "E141"
	CodeUnprepared control.Code = "E108"
	CodeMoves      control.Code = "E138"
	CodeExpired    control.Code = "E146"
	CodeTLS        control.Code = "E147"
	CodePayload    control.Code = "E148"
	CodeCluster    control.Code = "E149"
)

// askReply answers a request to join: one of the two.
type askReply struct {
	Grant   *members.Grant `json:"grant,omitempty"`
	Refused *control.Error `json:"refused,omitempty"`
}

// leaseRequest renews or ends a lease.
type leaseRequest struct {
	Incarnation uint64         `json:"incarnation"`
	Why         *control.Error `json:"why,omitempty"` // of an end that nobody has asked for
}

// leaseReply answers it.
type leaseReply struct {
	Stranger bool   `json:"stranger"`
	Changes  uint64 `json:"changes,omitempty"` // number of the last change of what hosts have; 0: nothing yet

	Shared []string `json:"shared,omitempty"` // channels and servers that programs of the host may use
}

// workReply is what a host is to have now.
type workReply struct {
	Work
	Text    string   `json:"text"` // of the pipeline, with all defaults
	Task    uint16   `json:"task"` // of the environments' episodes
	Changes uint64   `json:"changes"`
	Away    []string `json:"away"` // instances that are not on the run's own host
	Shares  []share  `json:"shares"`
	Pieces  []piece  `json:"pieces,omitempty"`

	Programs map[string]string            `json:"programs,omitempty"` // digests of native plugins; see readPrograms
	Absent   map[string]map[string]absent `json:"absent,omitempty"`   // see readAbsent
	First    map[string]int               `json:"first"`              // environment of each instance, of the run's
	SoA      map[string]bool              `json:"soa,omitempty"`      // of components of which blocks have come; see component.Host
}

// piece is a module or a folder of data that hosts get by its digest.
type piece struct {
	Key    string `json:"key"`    // of the pipeline, that has its path, such as env.walk.use
	SHA256 string `json:"sha256"` // of the file; of a folder the digest
	Size   int    `json:"size"`   // of what is sent: of a folder the archive
	Folder bool   `json:"folder,omitempty"`
}

// pieceRequest asks for a part of one.
type pieceRequest struct {
	SHA256 string `json:"sha256"`
	Part   int    `json:"part"`
}

// Work is what a host that joins needs to build parts of the pipeline.
type Work struct {
	Resumes int `json:"resumes"`
}

// stage is how far a change of environments on another host is to be taken: prepare, commit, and then settle or cancel. Cancel also ends one that
// is not committed.
type stage string

const (
	stagePrepare stage = "prepare"
	stageCommit  stage = "commit"
	stageSettle  stage = "settle"
	stageCancel  stage = "cancel"
	stageFault   stage = "fault" // of answers alone: the new version has failed on probation, and the host runs the previous one
)

func (s stage) final() bool { return s == stageSettle || s == stageCancel }

// order tells a host how far to take a change. It is told again and again until the host has answered the last one.
type order struct {
	Number uint64 `json:"number"` // of the change, from 1
	Share  uint64 `json:"share"`
	Stage  stage  `json:"stage"`
}

// changeRequest asks what a change is.
type changeRequest struct {
	Number uint64 `json:"number"`
}

// changeReply answers it: the pipeline with the next environments, and how they come.
type changeReply struct {
	Text      string             `json:"text"`
	Pieces    []piece            `json:"pieces,omitempty"`
	Programs  map[string]string  `json:"programs,omitempty"`
	At        component.Boundary `json:"at"`
	KeepState bool               `json:"keep_state"`
	Envs      int                `json:"envs"`
	Task      uint16             `json:"task"`
	TaskBack  uint16             `json:"task_back"`
}

// changeAnswer says that a host has done what an order told it, or why it could not.
type changeAnswer struct {
	Number uint64             `json:"number"`
	Stage  stage              `json:"stage"`
	Failed string             `json:"failed,omitempty"`
	Went   component.EnvsWent `json:"went"`
}

// Verbs of hosts, and what the owner tells all of them.
const (
	verbRenew   = "renew"
	verbLeave   = "leave"
	verbWork    = "work"
	verbStream  = "stream"
	verbState   = "state"
	verbWeights = "weights"
	verbPiece   = "piece"
	verbLines   = "lines"
	verbRest    = "rest"
	verbOrder   = "order"
	verbDone    = "done"
	verbBlocks  = "blocks"
	verbAnswers = "answers"
	verbCall    = "call"
	verbReplied = "replied"
	verbLoaded  = "loaded"
	tellOver    = "over"
)

// loadedReply says that an instance acts with a version of a policy, and how long it took to load that.
type loadedReply struct {
	Instance string        `json:"instance"`
	Policy   string        `json:"policy"`
	Version  uint64        `json:"version"`
	Took     time.Duration `json:"took"`
}

// linesRequest asks the owner to take lines of a host.
type linesRequest struct {
	Number      uint64 `json:"number"`
	Incarnation uint64 `json:"incarnation"`
}

// linesReply answers it: the owner's incarnation, 0 where the host has no lease.
type linesReply struct {
	Incarnation uint64 `json:"incarnation"`
}

// streamRequest asks the owner to take the blocks of an instance.
type streamRequest struct {
	ID         uint16         `json:"id"` // of the instance there
	Instance   string         `json:"instance"`
	Share      uint64         `json:"share"`
	Blocks     int            `json:"blocks"`
	BlockBytes int            `json:"block_bytes"`
	Schema     *native.Schema `json:"schema"`
}

// streamReply answers it.
type streamReply struct {
	Incarnation uint64 `json:"incarnation"` // of the owner
	Refused     string `json:"refused,omitempty"`
}

// Limits of a stream: blocks of an instance, and further ones of messages alone.
const (
	maxBlocks     = 4096
	maxBlockBytes = 64 << 20
	flightBytes   = 32 << 20 // on their way to the owner at once, of all instances together; one block of each in any case
	spare         = 4
)

// hostState is what a host is to know, by the names of instances: the newest versions of policies, and how many of its blocks are free again.
type hostState struct {
	Weights map[string]uint64 `json:"weights"`
	Freed   []freed           `json:"freed"`
	Rest    rest              `json:"rest"`
	Orders  []order           `json:"orders,omitempty"`

	With   []string `json:"with,omitempty"` // publishers whose newest weights follow
	bodies map[string]weights
}

// smallWeights is how large weights may be that are sent with a host's state. A host asks for larger ones, so that a slow link skips versions.
const smallWeights = 64 << 10

// weights are a version of a policy.
type weights struct {
	number uint64
	bytes  []byte
}

// readState reads the state that the owner tells a host: the length of its JSON, that, and weights as appendPart writes them. It shares b's memory.
func readState(b []byte) (s hostState, err error) {
	if len(b) < 4 {
		return s, errFrame
	}
	size := int(binary.LittleEndian.Uint32(b))
	if b = b[4:]; size > len(b) {
		return s, errFrame
	}
	if err := json.Unmarshal(b[:size], &s); err != nil {
		return s, err
	}
	s.bodies = map[string]weights{}
	b = b[size:]
	for _, name := range s.With {
		if len(b) < partHead {
			return s, errFrame
		}
		number, size := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		if b = b[partHead:]; size == 0 || size > uint64(len(b)) {
			return s, errFrame
		}
		s.bodies[name] = weights{number, b[:size]}
		b = b[size:]
	}
	return s, nil
}

// freed is how many blocks of a stream are free again.
type freed struct {
	Instance string `json:"instance"`
	Share    uint64 `json:"share"`
	Blocks   uint64 `json:"blocks"`
}

// weightsRequest asks for a part of the newest version of a policy.
type weightsRequest struct {
	Publisher string `json:"publisher"`
	Part      int    `json:"part"`
}

// partBytes is the size of all parts but the last.
const (
	partBytes = 512 << 10 // half of what a server of NATS takes at once where nobody has said otherwise
	partHead  = 16
)

// appendPart appends the version, the bytes of all parts, and one of them; nothing of it where there is no such part.
func appendPart(to []byte, version uint64, all []byte, part int) []byte {
	to = binary.LittleEndian.AppendUint64(to, version)
	to = binary.LittleEndian.AppendUint64(to, uint64(len(all)))
	if part < 0 || part > len(all)/partBytes {
		return to
	}
	first := part * partBytes
	return append(to, all[first:min(first+partBytes, len(all))]...)
}

// subjectOf is the end of a subject of one stream's.
func subjectOf(verb string, q *streamRequest) string {
	return verb + "." + strconv.FormatUint(q.Share, 10) + "." + strconv.Itoa(int(q.ID))
}

// encode writes a message of this package.
func encode[T askReply | leaseRequest | leaseReply | members.Request | workReply | streamRequest | streamReply | hostState | weightsRequest | pieceRequest | restReply |
	changeRequest | changeReply | changeAnswer | linesRequest | linesReply | loadedReply](v T) []byte {
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
	case errors.Is(err, members.ErrKernels):
		code, help = CodeKernels, "join with --slots 0 and use the run's channels alone, take a machine with the same processor's features, or train without synchronous"
	case errors.Is(err, members.ErrFull):
		code, help = CodeFull, "wait until a host has left, or train with a higher --hosts"
	}
	e := control.Errorf(code, "%v", err)
	e.Help = help
	return e
}

// unusable is the error of a cluster of the user's; nil where that is not why.
func unusable(err error) *control.Error {
	var e *control.Error
	switch {
	case errors.Is(err, cluster.ErrPayload):
		e = control.Errorf(CodePayload, "the cluster of `servers`: %v", err)
		e.Help = "raise max_payload in the servers' configuration (1MB is the default of NATS), or let the run listen by itself: rlhost train --listen"
	case errors.Is(err, cluster.ErrExternal):
		e = control.Errorf(CodeCluster, "%v", err)
		e.Help = "see whether the servers run, and whether creds and tls_ca of [cluster], or --creds and --tls-ca of rlhost join, are files for them"
	}
	return e
}

// unreachable is the error of a connection that did not come about.
func unreachable(t *cluster.Token, err error) *control.Error {
	if e := unusable(err); e != nil {
		return e
	}
	e := control.Errorf(CodeReach, "no run answers at %s: %v", t.Address, err)
	e.Help = "is the run still there (rlhost status on its host), and does a firewall let the port through? An address before --token-file replaces the token's"
	if errors.Is(err, cluster.ErrCertificate) || errors.Is(err, cluster.ErrKey) {
		e = control.Errorf(CodeOther, "the token is not of the run at %s: %v", t.Address, err)
		e.Help = "a token ends with the process that made it: copy join.token again from the folder of the run that listens there; the token is of " + t.Run
	}
	return e
}
