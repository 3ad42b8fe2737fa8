package members

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Errors of Owner, which wrap one of these.
var (
	ErrVersion  = errors.New("another version of rlhost")
	ErrKernels  = errors.New("it would compute other parameters")
	ErrFull     = errors.New("the run has no room for another host")
	ErrOld      = errors.New("an earlier attempt to join")
	ErrStranger = errors.New("not a host of this run, or no longer")
	ErrInvalid  = errors.New("not accepted")
)

// Bounds of a Request.
const (
	MaxText   = 256 // bytes of each text
	MaxSlots  = 4096
	MaxLabels = 32
)

// Request is what a host that wants to join sends.
type Request struct {
	Key     string `json:"key"`     // public, made by the host; its secret stays there
	Attempt uint64 `json:"attempt"` // counts what this key has asked for; a later one gets a new incarnation
	Name    string `json:"name"`    // proposed; the owner adds a number where another host has it
	Version string `json:"version"` // of rlhost
	Cores   int    `json:"cores"`
	Memory  uint64 `json:"memory"`            // bytes
	Kernels string `json:"kernels,omitempty"` // that policies are computed with there

	Slots  int               `json:"slots,omitempty"` // units of the pipeline that it may have
	Labels map[string]string `json:"labels,omitempty"`
}

// Grant is the owner's answer.
type Grant struct {
	Attempt     uint64        `json:"attempt"`
	Name        string        `json:"name"`
	Incarnation uint64        `json:"incarnation"` // above all that were granted before
	TTL         time.Duration `json:"ttl"`         // of the lease
}

// State says where a host stands.
type State uint8

// States of hosts.
const (
	Admitted State = 1 + iota // may connect, has not renewed its lease yet
	Here                      // its lease lasts
	Lost                      // its lease is over
	Left                      // it has said so
)

// String returns the state as status prints it.
func (s State) String() string {
	return [...]string{"none", "ADMITTED", "HERE", "LOST", "LEFT"}[s]
}

// Host is a row of the owner's table.
type Host struct {
	Request
	Grant Grant
	State State
	since time.Duration // time awake when it was admitted or last renewed
}

// Options of an Owner.
type Options struct {
	Epoch   uint32        // of the owner: above the epochs of all owners that the run had
	Version string        // of rlhost
	Kernels string        // that all hosts with slots must compute with; empty: any
	Most    int           // hosts at once
	TTL     time.Duration // of a lease
	Join    time.Duration // from the grant to the first lease
	Gap     time.Duration // see Awake
}

// Owner is the table of the hosts of a run. It is not safe for several goroutines.
type Owner struct {
	options Options
	awake   Awake
	grants  uint32
	hosts   map[string]*Host // by key
}

// NewOwner returns an empty table.
func NewOwner(o Options) *Owner {
	return &Owner{options: o, awake: Awake{Gap: o.Gap}, hosts: map[string]*Host{}}
}

// Ask admits a host or says why not. Asking again costs nothing, because an answer may be lost: the same attempt gets the same grant.
func (o *Owner) Ask(r Request) (Grant, error) {
	if err := o.check(r); err != nil {
		return Grant{}, err
	}
	h := o.hosts[r.Key]
	switch {
	case h != nil && r.Attempt < h.Request.Attempt:
		return Grant{}, fmt.Errorf("%w: %d, and %d has been answered", ErrOld, r.Attempt, h.Request.Attempt)
	case h != nil && r.Attempt == h.Request.Attempt && o.Admits(r.Key):
		return h.Grant, nil
	case h == nil:
		if err := o.makeRoom(); err != nil {
			return Grant{}, err
		}
		h = &Host{Grant: Grant{Name: o.nameFor(r.Name)}}
		o.hosts[r.Key] = h
	}
	o.grants++
	h.Request, h.State, h.since = r, Admitted, o.awake.Total()
	h.Grant.Attempt, h.Grant.TTL = r.Attempt, o.options.TTL
	h.Grant.Incarnation = uint64(o.options.Epoch)<<32 | uint64(o.grants)
	return h.Grant, nil
}

// Admits reports whether a key may connect.
func (o *Owner) Admits(key string) bool {
	h := o.hosts[key]
	return h != nil && (h.State == Admitted || h.State == Here)
}

// Knows reports whether a host of that key has been admitted before, and not been forgotten.
func (o *Owner) Knows(key string) bool { return o.hosts[key] != nil }

// Renew lets a host's lease last another TTL. It returns whether the host was admitted only until now.
func (o *Owner) Renew(key string, incarnation uint64) (first bool, err error) {
	h := o.hosts[key]
	if !o.Admits(key) || h.Grant.Incarnation != incarnation {
		return false, ErrStranger
	}
	first = h.State == Admitted
	h.State, h.since = Here, o.awake.Total()
	return first, nil
}

// Leave ends a host's lease at its own word.
func (o *Owner) Leave(key string, incarnation uint64) error {
	h := o.hosts[key]
	if !o.Admits(key) || h.Grant.Incarnation != incarnation {
		return ErrStranger
	}
	h.State = Left
	return nil
}

// Pulse says that an answer of the server has arrived now: see Awake. It returns the hosts that are lost by it, sorted by name.
func (o *Owner) Pulse(now time.Duration) (lost []Host) {
	total := o.awake.Pulse(now)
	for key, h := range o.hosts {
		switch {
		case h.State == Admitted && total-h.since > o.options.Join:
			delete(o.hosts, key)
		case h.State == Here && total-h.since > o.options.TTL:
			h.State = Lost
			lost = append(lost, *h)
		}
	}
	slices.SortFunc(lost, byName)
	return lost
}

// Host returns the row of a key, if there is one.
func (o *Owner) Host(key string) (h Host, known bool) {
	if row := o.hosts[key]; row != nil {
		return *row, true
	}
	return Host{}, false
}

// Hosts returns all rows, sorted by name.
func (o *Owner) Hosts() []Host {
	var list []Host
	for _, h := range o.hosts {
		list = append(list, *h)
	}
	slices.SortFunc(list, byName)
	return list
}

func byName(a, b Host) int { return strings.Compare(a.Grant.Name, b.Grant.Name) }

func (o *Owner) check(r Request) error {
	texts := []string{r.Key, r.Name, r.Version}
	for key, value := range r.Labels {
		texts = append(texts, key, value)
	}
	for _, text := range texts {
		if text == "" || len(text) > MaxText || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
			return fmt.Errorf("%w: the text %.40q", ErrInvalid, text)
		}
	}
	if r.Slots < 0 || r.Slots > MaxSlots || len(r.Labels) > MaxLabels {
		return fmt.Errorf("%w: %d slots and %d labels, at most %d and %d", ErrInvalid, r.Slots, len(r.Labels), MaxSlots, MaxLabels)
	}
	if major(r.Version) != major(o.options.Version) {
		return fmt.Errorf("%w: the host has %s, the run %s", ErrVersion, r.Version, o.options.Version)
	}
	if o.options.Kernels != "" && r.Slots > 0 && r.Kernels != o.options.Kernels {
		return fmt.Errorf("%w: the host %s has kernels %.20q, the run %q", ErrKernels, r.Name, r.Kernels, o.options.Kernels)
	}
	return nil
}

// major returns what must be the same for two versions to work together: the first number, "0" if there is none.
func major(version string) string {
	first, _, _ := strings.Cut(version, ".")
	return cmp.Or(first, "0")
}

// makeRoom forgets the host that ended with the lowest incarnation, where the table is full.
func (o *Owner) makeRoom() error {
	if len(o.hosts) < o.options.Most {
		return nil
	}
	oldest := ""
	for key, h := range o.hosts {
		if !o.Admits(key) && (oldest == "" || h.Grant.Incarnation < o.hosts[oldest].Grant.Incarnation) {
			oldest = key
		}
	}
	if oldest == "" {
		return fmt.Errorf("%w: it has %d", ErrFull, len(o.hosts))
	}
	delete(o.hosts, oldest)
	return nil
}

// nameFor returns a name that no host has: the proposed one, or that with a number. A host that is lost or has left loses its name and its row by
// it, so that a machine keeps its name when its program is started again.
func (o *Owner) nameFor(proposed string) string {
	taken := map[string]bool{}
	for key, h := range o.hosts {
		taken[h.Grant.Name] = taken[h.Grant.Name] || o.Admits(key)
	}
	name := proposed
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", proposed, n)
	}
	maps.DeleteFunc(o.hosts, func(_ string, h *Host) bool { return h.Grant.Name == name })
	return name
}
