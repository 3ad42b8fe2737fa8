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
	ErrFull     = errors.New("the run has no room for another host")
	ErrOld      = errors.New("an earlier attempt to join")
	ErrStranger = errors.New("not a host of this run, or no longer")
	ErrInvalid  = errors.New("not accepted")
)

// MaxText bounds each text of a Request, in bytes.
const MaxText = 256

// Request is what a host that wants to join sends.
type Request struct {
	Key     string `json:"key"`     // public, made by the host; its secret stays there
	Attempt uint64 `json:"attempt"` // counts what this key has asked for; a later one gets a new incarnation
	Name    string `json:"name"`    // proposed; the owner adds a number where another host has it
	Version string `json:"version"` // of rlhost
	Cores   int    `json:"cores"`
	Memory  uint64 `json:"memory"` // bytes
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
	for _, text := range []string{r.Key, r.Name, r.Version} {
		if text == "" || len(text) > MaxText || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
			return fmt.Errorf("%w: the text %.40q", ErrInvalid, text)
		}
	}
	if major(r.Version) != major(o.options.Version) {
		return fmt.Errorf("%w: the host has %s, the run %s", ErrVersion, r.Version, o.options.Version)
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

// nameFor returns a name that no row has: the proposed one, or that with a number.
func (o *Owner) nameFor(proposed string) string {
	taken := map[string]bool{}
	for h := range maps.Values(o.hosts) {
		taken[h.Grant.Name] = true
	}
	name := proposed
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d", proposed, n)
	}
	return name
}
