package proxy

import (
	"fmt"

	"github.com/rlhost/rlhost/core/arena"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi/native"
)

// announce notifies the plugin of an added or removed arena. It runs under the lock of the set.
func (l *session) announce(a *arena.Arena, added bool) {
	if !added {
		id := a.ID()
		l.sendFrame(native.Frame{Removed: &id})
		return
	}
	l.mu.Lock()
	call := uint64(0)
	if l.adding != "" && l.adding == a.Name() {
		call = l.addCall
		l.own[a.ID()] = true
	}
	l.mu.Unlock()
	if call != 0 {
		l.x.addOwn(a.ID()) // before the plugin can name its blocks
	}
	if call == 0 && l.x.owns(a.ID()) {
		return // of an earlier session: the plugin gets it when it asks for it
	}
	l.sendArena(a, call)
}

// sendArena sends an arena to the plugin.
func (l *session) sendArena(a *arena.Arena, call uint64) {
	s := a.Share()
	if s.WordsFD < 0 || s.DataFD < 0 {
		return // memory that cannot be shared
	}
	l.sendFrame(native.Frame{Arena: &native.Arena{
		Call: call, ID: s.ID, Name: s.Name, Blocks: s.Blocks, BlockBytes: s.BlockBytes, ReadOnly: s.ReadOnly,
		Schema: arena.Document(s.Schema),
	}}, s.WordsFD, s.DataFD)
}

// maxArenas is how many arenas a component may ask for.
const maxArenas = 32

// addArena makes an arena for the plugin, or reuses the arena of an earlier process of the same component with an equal request.
func (l *session) addArena(q *native.AddArena) {
	a, again, err := l.makeArena(q)
	if err != nil {
		l.sendFrame(native.Frame{Failed: &native.Failed{Call: q.Call, Reason: err.Error()}})
		return
	}
	if again {
		l.sendArena(a, q.Call)
	}
}

func (l *session) makeArena(q *native.AddArena) (a *arena.Arena, again bool, err error) {
	x := l.x
	name := x.h.Name + "." + cut(q.Name)
	if q.Call == 0 || q.Name == "" || len(q.Name) > 100 {
		return nil, false, fmt.Errorf("request %d for arena %.100q: number or name is not accepted", q.Call, q.Name)
	}
	contents, err := trajectory.DecodeSchema(q.Schema, q.BlockBytes)
	if err != nil {
		return nil, false, err
	}
	if a := x.ownArena(name, q); a != nil {
		l.mu.Lock()
		taken := l.own[a.ID()]
		l.own[a.ID()] = true
		l.mu.Unlock()
		if !taken {
			return a, true, nil
		}
	}
	if err := x.allow(name, q); err != nil {
		return nil, false, err
	}
	l.mu.Lock()
	l.adding, l.addCall = name, q.Call
	l.mu.Unlock()
	a, err = x.h.Arenas.Add(arena.Config{Name: name, Blocks: q.Blocks, BlockBytes: q.BlockBytes, Schema: contents})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adding = ""
	if err == nil {
		x.h.Own(a)
	}
	return a, false, err
}

// maxReason bounds a text for people that comes from outside.
const maxReason = 4096

func cut(text string) string { return text[:min(len(text), maxReason)] }

// ownArena returns an arena that an earlier process of the component had and that fits the request.
func (x *shared) ownArena(name string, q *native.AddArena) (found *arena.Arena) {
	x.h.Arenas.Each(func(a *arena.Arena) {
		if a.Name() == name && a.Blocks() == q.Blocks && a.BlockBytes() == q.BlockBytes && x.owns(a.ID()) {
			found = a
		}
	})
	return found
}

// allow checks that the component may have another arena, before any memory is taken for it.
func (x *shared) allow(name string, q *native.AddArena) error {
	limit := x.program.Memory
	wanted, err := arena.Footprint(q.Blocks, q.BlockBytes)
	if err != nil {
		return fmt.Errorf("arena %q: %w", name, err)
	}
	used, n := int64(0), 0
	x.h.Arenas.Each(func(a *arena.Arena) {
		if x.owns(a.ID()) {
			takes, _ := arena.Footprint(a.Blocks(), a.BlockBytes()) // it is there, so it has one
			used += takes
			n++
		}
	})
	if n >= maxArenas {
		return fmt.Errorf("arena %q: the component has %d arenas already", name, n)
	}
	if left := max(limit-used, 0); wanted > left {
		return fmt.Errorf("arena %q: %d blocks of %d bytes take %d, more than the %d bytes that the component may still have of %d: "+
			"raise `memory` of its plugin", name, q.Blocks, q.BlockBytes, wanted, left, limit)
	}
	return nil
}
