package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Types of frames; see RFC 9113, section 6.
const (
	frameData         = 0
	frameHeaders      = 1
	framePriority     = 2
	frameReset        = 3
	frameSettings     = 4
	framePing         = 6
	frameGoAway       = 7
	frameWindow       = 8
	frameContinuation = 9
)

// Flags of frames.
const (
	flagEndStream  = 1 // of DATA and HEADERS
	flagAck        = 1 // of SETTINGS and PING
	flagEndHeaders = 4
	flagPadded     = 8
	flagPriority   = 0x20
)

// Settings.
const (
	settingMaxStreams    = 3
	settingInitialWindow = 4
	settingMaxHeaderList = 6
)

// Error codes.
const (
	codeNone     = 0
	codeProtocol = 1
	codeRefused  = 7
)

const (
	preface       = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHeader   = 9
	maxFrame      = 16 << 10 // bytes of a frame's payload, unless somebody announces more, which we do not
	defaultWindow = 65535
	maxWindow     = 1<<31 - 1
)

// errFrame: what came is not HTTP/2 as it should be. The connection ends.
var errFrame = errors.New("not HTTP/2")

// frame is one that was received. Its payload is valid until the next is read.
type frame struct {
	kind, flags byte
	stream      uint32
	payload     []byte
}

// readFrame reads a frame into buf, which holds maxFrame bytes.
func readFrame(r *bufio.Reader, buf []byte) (frame, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
	if n > maxFrame {
		return frame{}, fmt.Errorf("%w: a frame of %d bytes", errFrame, n)
	}
	f := frame{kind: head[3], flags: head[4], stream: binary.BigEndian.Uint32(head[5:]) & maxWindow, payload: buf[:n]}
	_, err := io.ReadFull(r, f.payload)
	return f, err
}

// has reports whether a flag is set.
func (f *frame) has(flag byte) bool { return f.flags&flag != 0 }

// body returns the payload without padding and priority.
func (f *frame) body() ([]byte, error) {
	b := f.payload
	padding := 0
	if f.has(flagPadded) {
		if len(b) < 1 {
			return nil, fmt.Errorf("%w: padding", errFrame)
		}
		padding, b = int(b[0]), b[1:]
	}
	if f.kind == frameHeaders && f.has(flagPriority) {
		if len(b) < 5 {
			return nil, fmt.Errorf("%w: priority", errFrame)
		}
		b = b[5:]
	}
	if padding > len(b) {
		return nil, fmt.Errorf("%w: padding", errFrame)
	}
	return b[:len(b)-padding], nil
}

// number returns the payload of a frame that is one number.
func (f *frame) number() (uint32, error) {
	if len(f.payload) != 4 {
		return 0, fmt.Errorf("%w: frame %d of %d bytes", errFrame, f.kind, len(f.payload))
	}
	return binary.BigEndian.Uint32(f.payload), nil
}

// appendFrame appends a frame of at most maxFrame bytes.
func appendFrame(to []byte, kind, flags byte, stream uint32, payload ...byte) []byte {
	n := len(payload)
	to = append(to, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	to = binary.BigEndian.AppendUint32(to, stream)
	return append(to, payload...)
}

// appendNumber appends a frame that is one number.
func appendNumber(to []byte, kind byte, stream, value uint32) []byte {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], value)
	return appendFrame(to, kind, 0, stream, b[:]...)
}

// appendSettings appends SETTINGS with pairs of a setting and its value.
func appendSettings(to []byte, pairs ...uint32) []byte {
	var payload []byte
	for i := 0; i < len(pairs); i += 2 {
		payload = binary.BigEndian.AppendUint16(payload, uint16(pairs[i]))
		payload = binary.BigEndian.AppendUint32(payload, pairs[i+1])
	}
	return appendFrame(to, frameSettings, 0, 0, payload...)
}

// appendHeaders appends a block of headers, in as many frames as it needs.
func appendHeaders(to []byte, stream uint32, flags byte, block []byte) []byte {
	kind := byte(frameHeaders)
	for len(block) > maxFrame {
		to = appendFrame(to, kind, flags, stream, block[:maxFrame]...)
		kind, flags, block = frameContinuation, 0, block[maxFrame:]
	}
	return appendFrame(to, kind, flags|flagEndHeaders, stream, block...)
}
