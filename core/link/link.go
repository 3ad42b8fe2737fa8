package link

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/internal/grow"
	"github.com/rlhost/rlhost/core/loop"
	"github.com/rlhost/rlhost/hostabi"
)

// Errors of a link.
var (
	// ErrPeer: the other end broke the protocol. The link receives nothing more from it.
	ErrPeer = errors.New("the other end broke the rules of the link")
	// ErrStopped is returned by Send after Stop.
	ErrStopped = errors.New("link is stopped")
)

// Port is one of the ports that messages of data go through, in the order of their indexes in the manifest.
type Port struct {
	Name string // for messages to people
	// OnLoan: its messages name blocks that the requester has on loan, and carry no claim.
	OnLoan bool
}

// Config has the parts of a link. The transport stays the caller's: close it after Stop.
type Config struct {
	Name      string // of the component, for errors
	Transport Transport

	// Host is true at the end that owns the arenas. Data goes to a plugin by Slot, and comes from it by Signal.
	Host     bool
	Sends    []Port
	Receives []Port

	Arenas *arena.Set // where claims are counted
	// Receiver is the component's. Its data lane is paused while a window is full, and the link runs on its loop.
	Receiver *loop.Receiver

	// Limit returns how many messages of a port may be unacknowledged; below 1 means any number. It is called
	// now and then, on the goroutine of Send. nil means no limits.
	Limit func(port int) int
	// Window is the same for all ports together; 0 means any number.
	Window int

	// Answers returns how many answers a message about a block on loan gets that arrives at a port; at the host. nil means one. It
	// runs wherever the link takes messages out of the ring.
	Answers func(port int) int
	// Deliver gets the messages of data. At the host it runs wherever the link takes messages out of the ring, and
	// must not wait; the message is finished with when it returns. At a plugin it runs on the Receiver's data lane.
	// A block that the message carries stays valid during the call. Deliver may change the message. An error is the
	// peer's fault.
	Deliver func(port int, m *hostabi.Message) error
	// Control gets the messages that are about the link itself, but not acknowledgements. It runs wherever the link
	// takes messages out of the ring and must neither wait nor call Stop. An error is the peer's fault.
	Control func(m *hostabi.Message) error
	// Fault is called once, when the peer is at fault, on the goroutine that found out. It may call anything but
	// Stop, Poll, Wait and Drain. May be nil.
	Fault func(error)
}

// batch is how many messages are taken out of the ring at once.
const batch = 64

// Link is one end. New makes it, Start runs it, Stop ends it.
type Link struct {
	config Config

	stopped atomic.Bool           // by Stop: nothing touches the transport
	fault   atomic.Pointer[error] // why the peer is no longer listened to
	pump    sync.WaitGroup        // of the goroutine that takes messages while the loop has another source

	finished atomic.Uint64 // data messages of the peer that this end has finished with; they end in order
	urgent   atomic.Uint64 // value of finished that should soon be acknowledged
	received atomic.Uint64 // data messages taken out of the ring

	delivering atomic.Bool // a batch is being taken and delivered, while there is a goroutine for that

	rx        sync.Mutex // taking messages out of the ring
	pumping   bool       // of rx: there is a goroutine for that
	age       int        // of rx: batches since there was something to acknowledge and since agedSince changed
	agedSince uint64     // of rx: last acknowledgement when age was last 0
	since     time.Time  // of rx: when an acknowledgement was first put off
	toldThen  uint64     // of rx: last acknowledgement at that time
	buffer    [batch]hostabi.Message
	releases  []hostabi.Handle // of rx: claims of messages that have just been acknowledged
	ackSeen   uint64           // of rx: newest acknowledgement

	tx       sync.Mutex // everything below; also putting messages into the ring
	windows  windows
	requests requests
	queue    grow.FIFO[hostabi.Message] // waits for room in the ring
	sent     grow.FIFO[entry]           // not acknowledged, in order
	accepted uint64                     // data messages that Send took
	put      uint64                     // data messages that are or were in the ring
	acked    uint64                     // data messages that the peer has finished with
	told     uint64                     // newest acknowledgement that was put into the ring
	emptied  bool                       // Unfinished was called
	one      [1]hostabi.Message         // to put, so that no message escapes to the heap
}

// entry is a data message that was sent.
type entry struct {
	message hostabi.Message
	number  uint64 // counts the messages that Send took, from 1
	port    int
	claimed bool
	asks    bool // about a block on loan
}

// New returns a link that does nothing yet. Messages sent before Start wait in the ring.
func New(c Config) (*Link, error) {
	switch {
	case c.Transport == nil || c.Arenas == nil || c.Receiver == nil || c.Deliver == nil || c.Control == nil:
		return nil, fmt.Errorf("link of %s: transport, arenas, receiver or functions are missing", c.Name)
	case len(c.Sends) > int(hostabi.LinkControl) || len(c.Receives) > int(hostabi.LinkControl):
		return nil, fmt.Errorf("link of %s: more ports than messages can name", c.Name)
	}
	w := windows{receiver: c.Receiver, limit: c.Limit, most: c.Window, ports: make([]portState, len(c.Sends))}
	return &Link{config: c, windows: w}, nil
}

// Start runs the link: on the Receiver's loop if that has no other source, else on a separate goroutine until the loop has no source.
func (l *Link) Start() {
	l.rx.Lock()
	defer l.rx.Unlock()
	if !l.attach() {
		l.pumping = true
		l.pump.Go(l.receiveApart)
	}
}

// receiveApart is the goroutine that takes messages while the loop has another source. It checks for that before it
// sleeps: after each batch, and at least every longWait.
func (l *Link) receiveApart() {
	for !l.ended() {
		if l.take(false) > 0 {
			// The loop that was posted to runs here and now, before this thread sleeps in the kernel again: no other thread
			// has to be woken for it. A locked thread could not yield like that.
			runtime.Gosched()
			continue
		}
		l.rx.Lock()
		l.pumping = !l.attach()
		if !l.pumping {
			l.rx.Unlock()
			return
		}
		l.wait()
		l.rx.Unlock()
	}
}

// attach makes the link the source of the Receiver's loop, if that has none, and reports whether it did.
func (l *Link) attach() bool {
	on := l.config.Receiver.Loop()
	if on.HasSource() || !on.SetSource(l) {
		return false
	}
	if l.stopped.Load() {
		on.DropSource(l) // Stop may have come too early to do it
	}
	return true
}

// Stop ends the link. When it returns, nothing touches the transport, nothing is delivered any more, and the Receiver
// is no longer paused by the link. It must not be called from Config.Deliver at the host, Config.Control or
// Config.Fault. A second call does nothing.
func (l *Link) Stop() {
	if l.stopped.Swap(true) {
		return
	}
	l.config.Receiver.Loop().DropSource(l)
	l.config.Transport.Nudge()
	l.pump.Wait()
	l.rx.Lock() // the goroutine taking messages has ended
	defer l.rx.Unlock()
	l.tx.Lock()
	defer l.tx.Unlock()
	l.windows.ended = true
	l.windows.settle()
}

// Err returns why the peer is no longer listened to, or nil.
func (l *Link) Err() error {
	if err := l.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// fail notes the peer's fault and returns whether it is the first.
func (l *Link) fail(err error) bool {
	return l.fault.CompareAndSwap(nil, &err)
}

func (l *Link) blame(format string, args ...any) error {
	return fmt.Errorf("link of %s: %w: %s", l.config.Name, ErrPeer, fmt.Sprintf(format, args...))
}
