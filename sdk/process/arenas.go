package process

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi/native"
)

// arenas attaches the arenas that the host announces, and requests more.
type arenas struct {
	send func(f native.Frame, files ...int) error

	mu      sync.Mutex
	set     *arena.Set              // nil until the process knows its holder
	early   []func() error          // arenas announced before that
	calls   uint64                  // AddArena so far
	waiting map[uint64]chan granted // by call
}

// granted is the answer to AddArena.
type granted struct {
	arena *arena.Arena
	err   error
}

func newArenas(send func(native.Frame, ...int) error) *arenas {
	return &arenas{send: send, waiting: map[uint64]chan granted{}}
}

// open makes the set for a process with that holder number, with all arenas announced so far.
func (a *arenas) open(holder int) (*arena.Set, error) {
	set := arena.NewPeerSet(holder, a.add)
	a.mu.Lock()
	a.set = set
	early := a.early
	a.early = nil
	a.mu.Unlock()
	var errs []error
	for _, attach := range early {
		errs = append(errs, attach())
	}
	return set, errors.Join(errs...)
}

// arrived attaches an arena, or keeps it until the process knows its holder.
func (a *arenas) arrived(doc *native.Arena, words, data *os.File) error {
	attach := func() error { return a.attach(doc, words, data) }
	a.mu.Lock()
	if a.set == nil {
		a.early = append(a.early, attach)
		a.mu.Unlock()
		return nil
	}
	a.mu.Unlock()
	return attach()
}

func (a *arenas) attach(doc *native.Arena, words, data *os.File) error {
	got, err := a.attached(doc, words, data)
	a.mu.Lock()
	answer := a.waiting[doc.Call]
	delete(a.waiting, doc.Call)
	a.mu.Unlock()
	if answer == nil || doc.Call == 0 {
		return err
	}
	answer <- granted{got, err}
	return nil
}

func (a *arenas) attached(doc *native.Arena, words, data *os.File) (*arena.Arena, error) {
	sch, err := trajectory.DecodeSchema(doc.Schema, doc.BlockBytes)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("arena %q: %w", doc.Name, err), words.Close(), data.Close())
	}
	sh := arena.Shared{
		ID: doc.ID, Name: doc.Name, Blocks: doc.Blocks, BlockBytes: doc.BlockBytes, ReadOnly: doc.ReadOnly, Schema: sch,
		WordsFD: -1, DataFD: -1,
	}
	if sh.WordsFD, err = shm.Take(words); err == nil {
		sh.DataFD, err = shm.Take(data)
	}
	if err != nil {
		return nil, fmt.Errorf("arena %q: %w", doc.Name, err)
	}
	return a.set.Attach(sh)
}

// add asks the host for an arena and waits for it.
func (a *arenas) add(c arena.Config) (*arena.Arena, error) {
	answer := make(chan granted, 1)
	a.mu.Lock()
	a.calls++
	call := a.calls
	a.waiting[call] = answer
	a.mu.Unlock()
	err := a.send(native.Frame{AddArena: &native.AddArena{
		Call: call, Name: c.Name, Blocks: c.Blocks, BlockBytes: c.BlockBytes, Schema: arena.Document(c.Schema),
	}})
	if err != nil {
		return nil, fmt.Errorf("arena %q: %w", c.Name, err)
	}
	got := <-answer // the host answers, or this process ends with it
	return got.arena, got.err
}

// failed ends a refused call.
func (a *arenas) failed(f *native.Failed) {
	a.mu.Lock()
	answer := a.waiting[f.Call]
	delete(a.waiting, f.Call)
	a.mu.Unlock()
	if answer != nil {
		answer <- granted{err: errors.New(f.Reason)}
	}
}

// removed detaches an arena that the host has removed.
func (a *arenas) removed(id uint8) error {
	a.mu.Lock()
	set := a.set
	a.mu.Unlock()
	if set == nil {
		return nil
	}
	return set.Detach(id)
}
