package session

import (
	"bytes"
	"encoding/json"

	"github.com/rlhost/rlhost/core/control"
)

// OfComponent reports whether a record of a run's log is of a component that a pattern names; the empty pattern names
// all, and what is of no component too.
func OfComponent(pattern string, record []byte) bool {
	if pattern == "" {
		return true
	}
	var r struct {
		Component string `json:"component"`
	}
	if json.Unmarshal(record, &r) != nil {
		return false
	}
	ok, err := control.Match(pattern, r.Component, "")
	return err == nil && ok
}

// rawRecord is a record as the notice that it is.
func rawRecord(record []byte) json.RawMessage {
	record = bytes.TrimSpace(record)
	if json.Valid(record) {
		return record
	}
	text, err := json.Marshal(string(record))
	if err != nil {
		return json.RawMessage(`""`)
	}
	return text
}
