package worker

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// Limits of a worker's messages.
const (
	maxEnvMetrics    = 64
	maxEnvMetricName = 64
	maxEnvState      = 1 << 30
)

// mailbox keeps the messages from the wire of a worker of environments. Its methods may be called from any goroutine.
type mailbox struct {
	mu      sync.Mutex
	news    chan struct{} // has a token when something has changed
	metrics map[uint32]string
	err     error
}

func newMailbox() *mailbox {
	return &mailbox{news: make(chan struct{}, 1), metrics: map[uint32]string{}}
}

// fail notes that the worker has broken the protocol.
func (b *mailbox) fail(err error) {
	b.mu.Lock()
	if b.err == nil {
		b.err = err
	}
	b.mu.Unlock()
	b.wake()
}

// broken returns the worker's violation of its wire's protocol, or nil.
func (b *mailbox) broken() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *mailbox) wake() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}

func (b *mailbox) putMetric(m native.Metric) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(m.Name) == 0 || len(m.Name) > maxEnvMetricName || !utf8.ValidString(m.Name) {
		return fmt.Errorf("metric %.80q: a name has 1 to %d bytes", m.Name, maxEnvMetricName)
	}
	if len(b.metrics) == maxEnvMetrics {
		return fmt.Errorf("metric %q: at most %d are accepted", m.Name, maxEnvMetrics)
	}
	b.metrics[m.Number] = m.Name
	b.wake()
	return nil
}

// metric waits for the name of a metric that has been announced.
func (b *mailbox) metric(number uint32, gone func() bool) (name string, err error) {
	err = b.await(gone, func() bool {
		name = b.metrics[number]
		return name != ""
	})
	if errors.Is(err, spawn.ErrSlow) {
		err = fmt.Errorf("it reports a metric of number %d, which it has not announced", number)
	}
	return name, err
}

// await waits until there, called with mu held, is true of the worker's wire: at most as long as a message that was sent
// already takes at worst.
func (b *mailbox) await(gone, there func() bool) error {
	look := func() (bool, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return there(), b.err
	}
	if ok, _ := look(); ok { // a timer is not for the step path
		return nil
	}
	end := time.NewTimer(10 * time.Second)
	defer end.Stop()
	for {
		last := gone() // before looking: messages before the end count
		switch ok, err := look(); {
		case ok:
			return nil
		case err != nil:
			return err
		case last:
			return spawn.ErrDied
		}
		select {
		case <-b.news:
		case <-end.C:
			return spawn.ErrSlow
		}
	}
}
