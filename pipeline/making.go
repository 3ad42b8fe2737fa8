package pipeline

import "sync"

// making counts the environments that are made while a pipeline is built. Any goroutine.
type making struct {
	mu         sync.Mutex
	made, envs int
	tell       func(made, envs int) // or nil
}

func (m *making) begin(envs int, tell func(made, envs int)) {
	m.mu.Lock()
	m.envs, m.tell = envs, tell
	m.mu.Unlock()
	m.add(0)
}

// add notes that so many more are made.
func (m *making) add(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made += n
	if m.tell != nil {
		m.tell(m.made, m.envs)
	}
}
