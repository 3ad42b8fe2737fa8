package control

// State of a component instance. The first five are the states of a live worker, the others how it ended.
type State string

// States.
const (
	Ready       State = "ready"   // started, its loop does not run yet
	Running     State = "running" // its slots are called
	Paused      State = "paused"  // by a request; it keeps its blocks
	Stalled     State = "stalled" // messages wait for it and it has done nothing for a while
	Replacing   State = "replacing"
	Completed   State = "completed" // the run came to its end
	Interrupted State = "interrupted"
	Failed      State = "error"
	Lost        State = "lost" // its process has ended, or is not heard from
)
