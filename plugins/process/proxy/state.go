package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/hostabi/native"
	"github.com/rlhost/rlhost/plugins/process/spawn"
)

// maxStateBytes bounds a state from outside.
const maxStateBytes = 8 << 30

// stateLimit is how long a state may be on its way after the plugin has spoken of it.
const stateLimit = 10 * time.Second

// saved is a state that a process can go on from.
type saved struct {
	bytes    []byte
	at       time.Time
	finished uint64 // messages that the life it is from had finished with; 0 for an older life's
	from     *session
}

// Snapshot asks the process for the component's state.
func (x *proxy) Snapshot() (component.State, error) {
	if !x.snapshot {
		return component.State{}, fmt.Errorf("%w: plugin %q does not offer it", component.ErrNoSnapshot, x.program.Name)
	}
	x.mu.Lock()
	l := x.session
	x.mu.Unlock()
	if l == nil {
		return component.State{}, fmt.Errorf("%w: there is no process", component.ErrNoSnapshot)
	}
	raw, err := l.fetchState()
	if err != nil {
		return component.State{}, err
	}
	x.keepState(&saved{bytes: raw, at: time.Now(), finished: l.finishedNow(), from: l})
	return component.DecodeState(raw)
}

// finishedNow returns how many messages have had their part in the state that the process has just saved. How many it
// has finished with it has said before. At a boundary it waits in the slot of one more.
func (l *session) finishedNow() uint64 {
	l.catchUp()
	s := l.link.Stats()
	if l.atBoundary.Load() && s.Unacked > 0 {
		return s.Acked + 1
	}
	return s.Acked
}

// Restore gives the process a state.
func (x *proxy) Restore(s component.State) error {
	raw, err := component.EncodeState(s)
	if err != nil {
		return err
	}
	x.mu.Lock()
	l := x.session
	x.mu.Unlock()
	if l == nil {
		return errors.New("there is no process")
	}
	if err := l.giveState(raw); err != nil {
		return err
	}
	x.keepState(&saved{bytes: raw, at: time.Now(), from: l})
	return nil
}

func (x *proxy) keepState(s *saved) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.saved = s
}

// saveNow takes the state at a dataset boundary if the last one is old enough. What goes wrong is no reason to end
// the run: the state is only for a process that dies.
func (x *proxy) saveNow(l *session) {
	x.mu.Lock()
	recent := x.saved != nil && x.saved.from == l && time.Since(x.saved.at) < x.program.Snapshot
	x.mu.Unlock()
	if !x.snapshot || x.program.Snapshot < 0 || recent {
		return
	}
	if _, err := x.Snapshot(); err != nil && !errors.Is(err, component.ErrNoSnapshot) {
		x.h.Log.Warn("the state for a restart was not saved", "err", err)
	}
}

// fetchState asks for the state, and reads the memory file that it comes in.
func (l *session) fetchState() ([]byte, error) {
	l.calls.Add(1) // until the state is here, not only the answer
	defer l.calls.Add(-1)
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.patience(), spawn.ErrGrace)
	defer cancel()
	var size native.StateSize
	if err := l.call(ctx, native.MethodSnapshot, native.Empty{}, &size); err != nil {
		return nil, noSnapshot(err)
	}
	ctx, cancel = context.WithTimeoutCause(ctx, stateLimit, spawn.ErrGrace)
	defer cancel()
	f, err := l.awaitState(ctx, size.Call)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readMemoryFile(f, size.Bytes)
}

// noSnapshot marks a refusal as one that concerns the state and not the run.
func noSnapshot(err error) error {
	var e *spawn.Error
	if errors.As(err, &e) && e.Code == spawn.CodeProtocol {
		return fmt.Errorf("%w: %s", component.ErrNoSnapshot, e.Reason)
	}
	return err
}

// patience is how long a call on the loop may take. A process that does nothing meanwhile is found out by the
// supervisor before.
func (l *session) patience() time.Duration { return max(l.process.Program.Start, time.Minute) }

// putState keeps a state that came on the wire until it is asked for.
func (l *session) putState(s *native.StateSize, f *os.File) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.states[s.Call]; old != nil || len(l.states) == maxStates {
		_ = f.Close()
		return fmt.Errorf("state %d on its wire, with %d that nobody asked for", s.Call, len(l.states))
	}
	l.states[s.Call] = f
	close(l.came)
	l.came = make(chan struct{})
	return nil
}

// awaitState returns the file of a state: frames and answers take different ways.
func (l *session) awaitState(ctx context.Context, call uint64) (*os.File, error) {
	for {
		l.mu.Lock()
		f, came := l.states[call], l.came
		delete(l.states, call)
		l.mu.Unlock()
		if f != nil {
			return f, nil
		}
		select {
		case <-came:
		case <-l.process.Died():
			return nil, fmt.Errorf("state %d: %w", call, spawn.ErrDied)
		case <-ctx.Done():
			return nil, fmt.Errorf("state %d: the plugin speaks of it, but does not send it", call)
		}
	}
}

// readMemoryFile copies a memory file of another process into memory of our own. It is never mapped, since its
// owner could cut it, and no other kind of file is accepted, since reading might never end.
func readMemoryFile(f *os.File, bytes int64) ([]byte, error) {
	if bytes < 0 || bytes > maxStateBytes {
		return nil, fmt.Errorf("a state of %d bytes, at most %d", bytes, int64(maxStateBytes))
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		return nil, errors.New("its state is not a memory file")
	}
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("its state: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() < bytes {
		return nil, fmt.Errorf("its state has %d bytes, announced were %d", info.Size(), bytes)
	}
	b := make([]byte, bytes)
	if _, err := io.ReadFull(io.NewSectionReader(f, 0, bytes), b); err != nil {
		return nil, fmt.Errorf("its state: %w", err)
	}
	return b, nil
}

// giveState sends a state and tells the component to go on from it.
func (l *session) giveState(raw []byte) error {
	f, err := writeMemoryFile(raw)
	if err != nil {
		return err
	}
	defer f.Close()
	l.mu.Lock()
	l.calling++
	size := native.StateSize{Call: l.calling, Bytes: int64(len(raw))}
	l.mu.Unlock()
	if err := l.wire.Send(native.Frame{State: &size}, int(f.Fd())); err != nil {
		return l.process.SendError(native.MethodRestore, err)
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), l.patience(), spawn.ErrGrace)
	defer cancel()
	return l.call(ctx, native.MethodRestore, size, nil)
}

// writeMemoryFile returns a memory file that cannot be cut or changed.
func writeMemoryFile(b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("rlhost: state", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("state: memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "state")
	if _, err := f.Write(b); err != nil {
		return nil, errors.Join(fmt.Errorf("state: %w", err), f.Close())
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		return nil, errors.Join(fmt.Errorf("state: seal: %w", err), f.Close())
	}
	return f, nil
}
