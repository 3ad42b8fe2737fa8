package relay

// ReceiverPort carries out what a Receiver asks. Its methods are called within the Receiver's, and call none of them.
type ReceiverPort interface {
	// Send sends a message to the sending host.
	Send(m Message)
	// Commit copies a block's bytes, which were given to Handle, into a block of this host's arena and delivers it. There is one free for it:
	// the window counts those.
	Commit(from, number, steps uint64, body []byte)
	// Lost counts blocks that were under way and will not come: their sender has ended.
	Lost(from uint64, c Count)
}

// Receiver is the other end, for one sending host. It is not safe for several goroutines.
type Receiver struct {
	port   ReceiverPort
	own    uint64
	window uint64 // blocks of this host's arena that the sending host may fill
	flight uint64 // blocks that it may have on their way
	held   uint64 // of the window, filled and not yet free

	from      uint64 // the newest incarnation of the sending host
	open      bool
	committed Count  // numbers of from
	heard     Count  // numbers of from known to exist
	acked     uint64 // the number in the last answer
	limit     uint64 // in the last answer
	gap       uint64 // the number for which a resend was asked last

	// What an earlier incarnation had under way, which the sender gives new numbers as soon as it has read OPENED.
	owedOf uint64
	owed   Count

	// How many blocks an earlier incarnation had committed, until DATA of a later one says that the sender has read it.
	finalOf uint64
	final   uint64
}

// NewReceiver returns a Receiver of one sending host, which may fill window blocks. own is this host's incarnation.
func NewReceiver(own, window uint64, port ReceiverPort) *Receiver {
	return &Receiver{port: port, own: own, window: window, flight: window}
}

// Bound says, before the first message, how many blocks may be on their way at once: at least one, and by default as many as the window has.
func (r *Receiver) Bound(blocks uint64) { r.flight = max(1, min(r.window, blocks)) }

// Hold says, before the first message, that so many blocks of the window are filled already: of another sender. Freed counts them too.
func (r *Receiver) Hold(blocks uint64) { r.held = blocks }

// Handle takes a message from the sending host. The caller has checked that the body of Data is a block of the schema.
func (r *Receiver) Handle(m Message, body []byte) {
	switch {
	case m.Kind != Open && m.Kind != Data && m.Kind != Probe:
		return
	case m.To != r.own:
		r.port.Send(Message{Kind: Stranger, From: m.From, To: m.To, Limit: r.own})
	case m.From < r.from || m.From == r.from && !r.open || m.From > r.from && m.Kind != Open:
		r.port.Send(Message{Kind: Refused, From: m.From, To: r.own})
	case m.Kind == Open:
		r.opens(m)
	case m.Kind == Data:
		r.data(m, body)
	case r.hear(Count{m.Number, m.Steps}):
		r.ack(m.Number > r.committed.Blocks)
	}
}

// Told takes what the sending host's lease says of its Sender: see Sender.Told.
func (r *Receiver) Told(from, to uint64, given Count) {
	if to == r.own && from == r.from && r.open && given.Blocks > 0 {
		r.hear(given)
	}
}

// Freed says that committed blocks are free again. The sender hears of it, and of all commits, where it may wait for either.
func (r *Receiver) Freed(blocks uint64) {
	if blocks > r.held {
		panic("relay: more blocks are freed than were committed")
	}
	r.held -= blocks
	if r.open {
		r.report(1)
	}
}

// Expire says that the sending host's lease is over. It may come back with a newer incarnation.
func (r *Receiver) Expire() {
	if r.open {
		r.close()
	}
}

// Committed returns how many blocks of the newest incarnation were committed.
func (r *Receiver) Committed() (from uint64, c Count) { return r.from, r.committed }

// Missing returns what the sending host is known to have made and has not brought, beyond what was lost.
func (r *Receiver) Missing() Count {
	missing := r.owed
	if r.heard.Blocks > 0 {
		missing = r.heard.minus(r.committed)
	}
	return missing
}

// room is the limit that the window and what may be on its way allow.
func (r *Receiver) room() uint64 {
	return max(r.limit, r.committed.Blocks+min(r.flight, r.window-min(r.window, r.held)))
}

// half is half of what may be on its way. Answers that wait for so much keep the sender sending, and cost each end little.
func (r *Receiver) half() uint64 { return max(1, r.flight/2) }

// report answers once so many commits are not acknowledged, the limit can grow by half, or the sender may wait for it to grow at all.
func (r *Receiver) report(commits uint64) {
	grows := r.room() - r.limit
	if r.committed.Blocks-r.acked >= commits || grows >= r.half() || grows > 0 && r.limit == r.committed.Blocks {
		r.ack(false)
	}
}

func (r *Receiver) opens(m Message) {
	if m.From > r.from {
		if r.open {
			r.close()
		}
		r.settle(m.Previous)
		r.from, r.open, r.committed, r.heard, r.gap, r.acked, r.limit = m.From, true, Count{}, Count{}, 0, 0, 0
		r.limit = r.room()
	}
	answer := Message{Kind: Opened, From: m.From, To: r.own, Previous: m.Previous, Limit: r.limit}
	switch {
	case m.Previous == 0 || m.Previous >= m.From:
	case m.Previous == r.finalOf:
		answer.Known, answer.Number = true, r.final
	default:
		answer.Known = m.Number == 0 // nothing of it was committed, or it would be the one that is remembered
	}
	r.port.Send(answer)
}

func (r *Receiver) close() {
	r.open = false
	if r.committed.Blocks > 0 {
		r.finalOf, r.final = r.from, r.committed.Blocks
	}
}

// settle decides what becomes of blocks under way when a newer incarnation opens: it sends the blocks that previous had numbered. Nobody speaks for
// others.
func (r *Receiver) settle(previous uint64) {
	if r.heard.Blocks > 0 {
		r.owedOf, r.owed = r.from, r.heard.minus(r.committed)
	}
	if r.owed.Blocks == 0 {
		return
	}
	if previous == 0 || previous != r.owedOf && previous != r.from {
		r.port.Lost(r.owedOf, r.owed)
		r.owed = Count{}
	}
	r.owedOf = previous
}

// hear takes the highest number that the sender has given, and returns false for one that it cannot have given.
func (r *Receiver) hear(given Count) bool {
	if given.Blocks > r.limit || given.Blocks > r.heard.Blocks && given.Steps < r.heard.Steps {
		return false
	}
	r.take(r.owed)
	r.owed = Count{}
	r.take(given)
	return true
}

func (r *Receiver) take(given Count) {
	if given.Blocks > r.heard.Blocks {
		r.heard = given
	}
}

func (r *Receiver) data(m Message, body []byte) {
	next := m.Number == r.committed.Blocks+1
	if m.Number > r.limit && m.Number > r.committed.Blocks || next && m.Steps < r.committed.Steps || !r.hear(Count{m.Number, m.Steps}) {
		return
	}
	r.finalOf, r.final = 0, 0
	switch {
	case next:
		steps := m.Steps - r.committed.Steps
		r.committed = Count{m.Number, m.Steps}
		r.held++
		r.port.Commit(r.from, m.Number, steps, body)
		r.report(min(r.half(), 4))
	case m.Number <= r.committed.Blocks:
		r.ack(false)
	case r.gap != r.committed.Blocks+1:
		r.gap = r.committed.Blocks + 1
		r.ack(true)
	}
}

func (r *Receiver) ack(resend bool) {
	r.acked, r.limit = r.committed.Blocks, r.room()
	r.port.Send(Message{Kind: Ack, From: r.from, To: r.own, Number: r.committed.Blocks, Limit: r.limit, Resend: resend})
}
