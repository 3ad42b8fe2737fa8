package process

// Process returns the process that the component runs in, for whoever describes a running pipeline: its id, 0 while there
// is none, and its state: starting, running, restarting, stopping or failed. Any goroutine.
func (x *proxy) Process() (pid int, state string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.life != nil && x.state == stateRunning {
		pid = x.life.process.pid()
	}
	return pid, x.state
}
