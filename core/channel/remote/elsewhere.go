package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/rlhost/rlhost/core/shm"
)

// A message between Near and Carry is a frame behind its length. What lies in the regions that the frame names follows, because the two machines
// share no memory: of each region its number and its size, then the bytes that are meant.
const (
	frameSize  = 4
	regionHead = 24
)

// Where a reply has the number of its spare region, and an item of a table that of its own.
const (
	spareAt  = 16
	regionAt = 8
)

// content is what a message has of a region.
type content struct {
	id   uint64
	size int // of the region
	data []byte
}

func appendFrame(to, frame []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(to, uint32(len(frame))), frame...)
}

func appendContent(to []byte, c content) []byte {
	for _, word := range [...]uint64{c.id, uint64(c.size), uint64(len(c.data))} {
		to = binary.LittleEndian.AppendUint64(to, word)
	}
	return append(to, c.data...)
}

var errMessage = errors.New("not a message of a channel's")

// parseMessage returns the frame of a message and what follows, which share its memory.
func parseMessage(m []byte) (frame []byte, regions []content, err error) {
	if len(m) < frameSize || int(binary.LittleEndian.Uint32(m)) > len(m)-frameSize {
		return nil, nil, fmt.Errorf("%w: %d bytes", errMessage, len(m))
	}
	end := frameSize + int(binary.LittleEndian.Uint32(m))
	frame, m = m[frameSize:end], m[end:]
	for len(m) > 0 {
		if len(m) < regionHead {
			return nil, nil, fmt.Errorf("%w: %d bytes of a region", errMessage, len(m))
		}
		le := binary.LittleEndian
		c, n := content{id: le.Uint64(m), size: int(le.Uint64(m[8:]))}, le.Uint64(m[16:])
		m = m[regionHead:]
		if n > uint64(len(m)) || c.size < 0 || uint64(c.size) < n {
			return nil, nil, fmt.Errorf("%w: %d bytes of a region of %d", errMessage, n, c.size)
		}
		c.data, m = m[:n:n], m[n:]
		regions = append(regions, c)
	}
	return frame, regions, nil
}

// puts reports whether a request brings an item in a region.
func (r *request) puts() bool { return r.region != 0 && (r.op == opPut || r.op == opPutBack) }

// refusedHello is the answer to a client that is not served.
func refusedHello(seq uint32, why error) []byte {
	return append((&reply{op: opHello, seq: seq, status: statusOf(why)}).append(nil), why.Error()...)
}

// sendAll sends a frame however long the other end does not read.
func sendAll(s *shm.Socket, frame []byte, files ...int) error {
	for {
		err := s.Send(frame, files...)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// receive reads a frame whose sender may attach a file, which is nil where there is none.
func receive(s *shm.Socket, buf []byte) (frame []byte, file *os.File, err error) {
	n, files, err := s.Receive(buf)
	for i, f := range files {
		if i == 0 {
			file = f
			continue
		}
		_ = f.Close() // no frame has two
	}
	return buf[:n], file, err
}
