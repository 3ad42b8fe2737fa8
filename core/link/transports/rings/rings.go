// Package rings is the transport of a link over two rings in shared memory, one for each direction, between processes of
// one machine.
package rings

import (
	"errors"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/hostabi"
)

// New makes the host's end, and two files that the plugin makes its end of: the ring from the host and the one to it. Both are
// made at the same time, because finding out how much memory there is, and clearing some, takes long. The caller closes the files.
func New(program string) (link.Transport, []*os.File, error) {
	program = program[:min(len(program), 100)] // the system takes no longer names of segments
	p := new(ring.Pair)
	var inErr, outErr error
	made := make(chan struct{})
	go func() {
		defer close(made)
		p.In, inErr = ring.New("rlhost: from "+program, hostabi.LinkCells)
	}()
	p.Out, outErr = ring.New("rlhost: to "+program, hostabi.LinkCells)
	<-made
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, nil, errors.Join(err, closeAll(p.In, p.Out))
	}
	var files []*os.File
	for _, r := range []*ring.SPSC{p.Out, p.In} {
		fd, err := shm.Dup(r.FD())
		if err != nil {
			for _, f := range files {
				err = errors.Join(err, f.Close())
			}
			return nil, nil, errors.Join(fmt.Errorf("ring: %w", err), p.Close())
		}
		files = append(files, os.NewFile(uintptr(fd), "ring"))
	}
	return p, files, nil
}

// Open makes the plugin's end of the files of New, which have the descriptors from first on. The end owns them.
func Open(first int) (link.Transport, error) {
	in, inErr := ring.Open(first)
	out, outErr := ring.Open(first + 1)
	if err := errors.Join(inErr, outErr); err != nil {
		return nil, errors.Join(err, closeAll(in, out))
	}
	return &ring.Pair{Out: out, In: in}, nil
}

// closeAll closes the rings that exist.
func closeAll(rings ...*ring.SPSC) error {
	var errs []error
	for _, r := range rings {
		if r != nil {
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}
