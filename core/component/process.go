package component

// States of a component's process.
const (
	ProcessStarting   = "starting"
	ProcessRunning    = "running"
	ProcessRestarting = "restarting"
	ProcessStopping   = "stopping"
	ProcessFailed     = "failed"
)

// Process describes the process that a component runs in. The zero value is that of a component that has not been
// started.
type Process struct {
	PID        int // 0 while there is none
	State      string
	Restarts   int    // so far
	Unfinished int    // messages given to it and not finished
	Holder     int    // the number under which arenas keep its claims, 0 while there is none
	Refused    string // the first message of it that the host refused, and why; empty if there is none
}

// Remote is optional, for a component that runs in its own process. Its methods may be called from any goroutine, between Start and Stop.
type Remote interface {
	// Process returns the process as it is now.
	Process() Process
	// CatchUp delivers the messages that the process has emitted so far.
	CatchUp()
	// GiveUp makes a Snapshot that waits for the process return why. The process is left as it is.
	GiveUp(why error)
	// Dismiss kills the process and starts no other: the component is removed without a pause. Once Process reports the failure,
	// Pauser.Waiting returns its unfinished messages.
	Dismiss(why error)
}
