package session

import (
	"bytes"
	"encoding/json"
	"sync"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// OfComponent reports whether a record of a run's log is of a component that a pattern names; the empty pattern names
// all, and records of no component too.
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

// earlyRecords bounds the log that is kept before there is a run.
const earlyRecords = 64 << 10

// Records keeps the log from before there is a run, and then writes to the run's log: JSON, one record a call of Write. Use the zero value.
type Records struct {
	mu    sync.Mutex
	file  *runs.LogFile
	early []byte
}

// Write keeps or writes one record.
func (r *Records) Write(record []byte) (int, error) {
	r.mu.Lock()
	file := r.file
	if file == nil && len(r.early)+len(record) <= earlyRecords {
		r.early = append(r.early, record...)
	}
	r.mu.Unlock()
	if file != nil {
		return file.Write(record)
	}
	return len(record), nil
}

// open begins to write to a file, starting with the earlier records.
func (r *Records) open(file *runs.LogFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.early) > 0 {
		_, _ = file.Write(r.early) // it counts failed writes
	}
	r.file, r.early = file, nil
}

func (r *Records) log() *runs.LogFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.file
}

func (r *Records) close() error {
	if file := r.log(); file != nil {
		return file.Close()
	}
	return nil
}
