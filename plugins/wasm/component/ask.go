package component

import (
	"encoding/binary"
	"maps"
	"math"
	"strings"

	core "github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi"
)

// maxQuestions is how many questions of a guest may have no answer yet.
const maxQuestions = 256

// asking are the questions that a guest has asked others. Each that its memory knows gets one answer.
type asking struct {
	begun bool              // the guest is started
	of    []hostabi.Request // that it may ask
	last  uint32            // number of the newest question
	open  map[uint32]uint32 // by numbers, the asks of the questions whose answers the guest has not got
	saved map[uint32]uint32 // the same, of the state that a fault goes back to
}

// begin returns the number of a new question, or a Status.
func (a *asking) begin(ask uint32) int32 {
	if len(a.open) >= maxQuestions || a.last == math.MaxInt32 {
		return int32(hostabi.StatusMemory)
	}
	if a.open == nil {
		a.open = map[uint32]uint32{}
	}
	a.last++
	a.open[a.last] = ask
	return int32(a.last)
}

// save notes which questions the saved state knows.
func (a *asking) save() {
	if len(a.saved)+len(a.open) > 0 {
		a.saved = maps.Clone(a.open)
	}
}

// describeAnswer returns the argument of rl_answer.
func describeAnswer(number, ask uint32, reply []byte, failed error) []byte {
	call := hostabi.AnswerCall{Size: hostabi.AnswerCallBytes, Question: number, Ask: ask}
	var texts []byte
	add := func(text []byte) (at, n uint32) {
		at = hostabi.AnswerCallBytes + uint32(len(texts))
		texts = append(texts, text...)
		return at, uint32(len(text))
	}
	if failed == nil {
		call.TextAt, call.TextLen = add(reply)
	} else {
		var fault core.Raised
		call.Fault, fault = core.FaultOf(failed)
		call.TextAt, call.TextLen = add(cut(fault.Text))
		call.TypeAt, call.TypeLen = add(cut(fault.Type))
		call.PlaceAt, call.PlaceLen = add(cut(fault.Place))
	}
	b, _ := binary.Append(nil, binary.LittleEndian, &call) // a struct of fixed size always fits
	return append(b, texts...)
}

// cut bounds a text of an error: it comes from another component.
func cut(text string) []byte {
	return []byte(strings.ToValidUTF8(text[:min(len(text), hostabi.MaxRequestBytes)], ""))
}
