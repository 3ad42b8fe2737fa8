package process

// Process returns the process that the component runs in, for whoever describes a running pipeline: its id, 0 while there
// is none, its state (starting, running, restarting, stopping or failed), and how many messages it has been given and is
// not finished with. Any goroutine.
func (x *proxy) Process() (pid int, state string, unfinished int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.life != nil && x.state == stateRunning {
		pid, unfinished = x.life.process.pid(), x.life.link.Stats().Unacked
	}
	return pid, x.state, unfinished
}

// Holder returns under which number arenas keep the claims of the component's process, 0 while there is none. Any
// goroutine.
func (x *proxy) Holder() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.life == nil || x.state != stateRunning {
		return 0
	}
	return x.life.claims
}
