package members

import "time"

// MemberPort carries out what a Member asks. Its methods are called within the Member's, and call none of them.
type MemberPort interface {
	// Ask sends a request with the secret of the join token. The answer comes as Granted or Denied, or never.
	Ask(r Request)
	// Connect connects with the host's own key. The answer comes as Connected, or as Refused where the key is not admitted, or never.
	Connect(g Grant)
	// Renew asks to renew the lease over the host's own connection. The answer comes as Renewed or Stranger, or never.
	Renew(incarnation uint64)
}

// MemberOptions are what a Member is made with.
type MemberOptions struct {
	Request Request       // what it asks for; Attempt counts up from there
	Every   time.Duration // between two renewals, and two attempts to be heard
	Grace   time.Duration // without an answer of the owner: then its components pause
	Abandon time.Duration // without an answer of the owner: then it ends
}

// Member is the end of a host that joins. It is not safe for several goroutines.
type Member struct {
	port    MemberPort
	options MemberOptions
	request Request
	step    step
	grant   Grant
	due     time.Duration
	heard   time.Duration // last answer of the owner
}

type step uint8

const (
	asking step = iota
	connecting
	leasing
)

// NewMember returns a Member that has asked to join.
func NewMember(now time.Duration, port MemberPort, o MemberOptions) *Member {
	m := &Member{port: port, options: o, request: o.Request, heard: now}
	m.ask(now)
	return m
}

// Tick does what is due at Deadline.
func (m *Member) Tick(now time.Duration) {
	if now < m.due {
		return
	}
	m.due = now + m.options.Every
	switch m.step {
	case asking:
		m.port.Ask(m.request)
	case connecting:
		m.port.Connect(m.grant)
	case leasing:
		m.port.Renew(m.grant.Incarnation)
	}
}

// Deadline returns when Tick is to be called.
func (m *Member) Deadline() time.Duration { return m.due }

// Granted takes the owner's answer to Ask.
func (m *Member) Granted(now time.Duration, g Grant) {
	if m.step != asking || g.Attempt != m.request.Attempt {
		return
	}
	m.heard, m.grant, m.step, m.due = now, g, connecting, now
	m.Tick(now)
}

// Connected says that the host's own key was accepted, for the grant of an incarnation.
func (m *Member) Connected(now time.Duration, incarnation uint64) {
	if m.step != connecting || incarnation != m.grant.Incarnation {
		return
	}
	m.step, m.due = leasing, now
	m.Tick(now)
}

// Refused says that the server does not know the host's own key: the owner is another one, or has forgotten it.
func (m *Member) Refused(now time.Duration, incarnation uint64) {
	if m.step != asking && incarnation == m.grant.Incarnation {
		m.again(now)
	}
}

// Renewed takes the owner's answer to Renew.
func (m *Member) Renewed(now time.Duration, incarnation uint64) {
	if m.step == leasing && incarnation == m.grant.Incarnation {
		m.heard = now
	}
}

// Stranger takes the owner's answer to Renew where the incarnation is over.
func (m *Member) Stranger(now time.Duration, incarnation uint64) {
	if m.step == leasing && incarnation == m.grant.Incarnation {
		m.again(now)
	}
}

// Incarnation returns the host's incarnation, 0 while it has none.
func (m *Member) Incarnation() uint64 {
	if m.step != leasing {
		return 0
	}
	return m.grant.Incarnation
}

// Name returns the host's name in the run, "" before the first grant.
func (m *Member) Name() string { return m.grant.Name }

// Pauses reports whether the owner has been silent for so long that components pause, and over whether the host ends.
func (m *Member) Pauses(now time.Duration) (pauses, over bool) {
	silent := now - m.heard
	return silent > m.options.Grace, silent > m.options.Abandon
}

func (m *Member) again(now time.Duration) {
	m.request.Attempt++
	m.ask(now)
}

func (m *Member) ask(now time.Duration) {
	m.step, m.due = asking, now
	m.Tick(now)
}
