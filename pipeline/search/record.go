package search

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// Record is a line of a search's journal: the one field beside its time that is given.
type Record struct {
	Time     time.Time `json:"time"`
	Orders   []Order   `json:"orders,omitempty"`
	Outcome  *Outcome  `json:"outcome,omitempty"`
	Judgment *Judgment `json:"judgment,omitempty"`
	Point    Point     `json:"point,omitempty"`  // a trial more, with these values
	Trials   int       `json:"trials,omitempty"` // the search has that many from now on
	Retry    bool      `json:"retry,omitempty"`  // the trials whose failures ended the search are made again
}

// Order says that a trial is to be trained until it has made so many env steps: from nothing at the first rung and for a confirmation,
// else from where the rung before ended.
type Order struct {
	Trial   int      `json:"trial"`
	Rung    int      `json:"rung"`
	Confirm bool     `json:"confirm,omitempty"`
	Until   uint64   `json:"until"`
	Seeds   []uint64 `json:"seeds"`           // a run each
	Added   bool     `json:"added,omitempty"` // its point is not the sampler's
	Set     Point    `json:"set,omitempty"`   // of a trial that begins
}

// Outcome is what became of one of an order's runs.
type Outcome struct {
	Trial    int      `json:"trial"`
	Rung     int      `json:"rung"`
	Confirm  bool     `json:"confirm,omitempty"`
	Seed     uint64   `json:"seed"`
	EnvSteps uint64   `json:"env_steps"`
	Value    *float64 `json:"value"` // nil where it failed
	Hash     string   `json:"params_hash,omitempty"`
	Error    string   `json:"error,omitempty"`
	Seconds  float64  `json:"wall_seconds"`
}

// Judgment is a program's answer to the report of a rung.
type Judgment struct {
	Trial int  `json:"trial"`
	Rung  int  `json:"rung"`
	Prune bool `json:"prune"` // the trial ends there
}

// Line returns the record as a line of the journal.
func (r *Record) Line() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(r)
	return b.Bytes(), err
}

// errFields is the error of a record that says nothing, or several things.
var errFields = errors.New("it must have one of orders, outcome, judgment, point, trials and retry")

// ReadRecord reads a line of a journal.
func ReadRecord(line []byte) (*Record, error) {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	r := &Record{}
	if err := d.Decode(r); err != nil {
		return nil, err
	}
	given := 0
	for _, is := range []bool{len(r.Orders) > 0, r.Outcome != nil, r.Judgment != nil, len(r.Point) > 0, r.Trials != 0, r.Retry} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, errFields
	}
	if o := r.Outcome; o != nil && (o.Value == nil) == (o.Error == "") {
		return nil, errors.New("an outcome has either a value or an error")
	}
	return r, nil
}

// Failed makes the outcome one of a failure.
func (o *Outcome) Failed(err error) {
	o.Value, o.Hash, o.Error = nil, "", err.Error()
}

// Judged makes the outcome one with a value, unless that is no number.
func (o *Outcome) Judged(value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		o.Failed(fmt.Errorf("its value is %g", value))
		return
	}
	o.Value = &value
}
