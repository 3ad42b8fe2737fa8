package worker

import "sync"

// making tells how many environments a process has made while it makes them. Any goroutine.
type making struct {
	mu         sync.Mutex
	tell       func(n int) // or nil
	told, envs int
}

func (m *making) begin(tell func(n int), envs int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell, m.told, m.envs = tell, 0, envs
}

// reach notes that so many environments are made.
func (m *making) reach(made int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	made = min(made, m.envs)
	if m.tell == nil || made <= m.told {
		return
	}
	m.tell(made - m.told)
	m.told = made
}
