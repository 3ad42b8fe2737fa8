package process

import (
	"errors"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi/native"
)

// readWire handles the host's frames until the host is gone, which ends this process at once: nothing can be written
// any more.
func (s *server) readWire() {
	buf := make([]byte, native.MaxFrame)
	for {
		n, files, err := s.wire.Receive(buf)
		if errors.Is(err, shm.ErrTooLarge) || errors.Is(err, shm.ErrEmpty) {
			s.log.Warn("a frame of the host is lost", "error", err)
			continue
		}
		if err != nil {
			s.exit(0)
			return
		}
		if err := s.frame(buf[:n], files); err != nil {
			s.log.Warn("a frame of the host is not understood", "error", err)
		}
	}
}

// frame handles one frame. Its files are passed on or closed.
func (s *server) frame(doc []byte, files []*os.File) error {
	var f native.Frame
	if err := decodeJSON(doc, &f); err != nil {
		return errors.Join(err, closeAll(files))
	}
	want := 0
	switch {
	case f.Arena != nil:
		want = 2
	case f.File != nil, f.State != nil:
		want = 1
	}
	if len(files) != want {
		return errors.Join(fmt.Errorf("%d files, want %d", len(files), want), closeAll(files))
	}
	switch {
	case f.Arena != nil:
		return s.arenas.arrived(f.Arena, files[0], files[1])
	case f.Removed != nil:
		return s.arenas.removed(*f.Removed)
	case f.Request != nil:
		if x := s.asked.Load(); x != nil { // else the host knows that nobody answers
			x.request(f.Request)
		}
	case f.Told != nil:
		if x := s.asked.Load(); x != nil {
			x.peers.told(f.Told)
		}
	case f.Failed != nil:
		s.arenas.failed(f.Failed)
	case f.File != nil:
		s.envs.files.put(f.File.Number, announced{*f.File, files[0]})
	case f.State != nil:
		s.envs.states.put(f.State.Call, files[0])
	}
	return nil // frames of later versions are ignored
}

func closeAll(files []*os.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
