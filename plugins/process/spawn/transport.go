package spawn

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/rlhost/rlhost/core/link"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/hostabi"
)

// openRings makes the host's end of a transport, and the files that the plugin makes its end of: it inherits them as
// native.FDIn and FDOut. Both rings are made at the same time: it takes long enough to tell how much memory there is, and
// to clear some.
func openRings(program string) (link.Transport, []*os.File, error) {
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
		for _, r := range []*ring.SPSC{p.In, p.Out} {
			if r != nil {
				err = errors.Join(err, r.Close())
			}
		}
		return nil, nil, err
	}
	var files []*os.File
	for _, r := range []*ring.SPSC{p.Out, p.In} {
		fd, err := unix.FcntlInt(uintptr(r.FD()), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("ring: %w", err), CloseFiles(files), p.Close())
		}
		files = append(files, os.NewFile(uintptr(fd), "ring"))
	}
	return p, files, nil
}
