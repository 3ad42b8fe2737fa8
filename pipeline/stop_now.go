package pipeline

import "github.com/rlhost/rlhost/core/component"

// StopNow ends the run at once, without another dataset boundary: what is under way is lost. The reason counts if there
// is none yet. It may be called from any goroutine.
func (p *Pipeline) StopNow(reason component.StopReason) {
	p.ending.mu.Lock()
	if p.ending.reason == "" {
		p.ending.reason = reason
	}
	p.ending.mu.Unlock()
	p.endLoops()
}
