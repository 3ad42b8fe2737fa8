package control

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// MaxFrame is the most bytes of JSON in one frame.
const MaxFrame = 16 << 20

// frameHead is how many bytes hold the length of the JSON after them, little-endian.
const frameHead = 4

// Limits on how long one end waits for the other.
const (
	frameTime = 10 * time.Second // to receive a begun frame to its end, or for the peer to take one
	idleTime  = time.Minute      // for the next request
)

// ErrFrame says that a peer's frame is empty, too long, or not the expected JSON.
var ErrFrame = errors.New("malformed frame")

// hello is the first frame of both ends. Every later version must be able to read it, so unknown fields are
// ignored, in this frame only.
type hello struct {
	Protocol int `json:"rlhost_control"`
}

// ask is a frame from client to job.
type ask struct {
	Verb    Verb            `json:"verb"`
	Request json.RawMessage `json:"request,omitempty"`
}

// answer is a frame from job to client. Exactly one field is set; a notice is followed by more frames.
type answer struct {
	Notice json.RawMessage `json:"notice,omitempty"`
	Reply  json.RawMessage `json:"reply,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// readFrame reads the JSON of one frame. It takes memory as bytes arrive, whatever length was announced.
func readFrame(r io.Reader) ([]byte, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > MaxFrame {
		return nil, fmt.Errorf("%w: %d bytes, want 1 to %d", ErrFrame, n, MaxFrame)
	}
	var body bytes.Buffer
	if _, err := io.CopyN(&body, r, int64(n)); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return body.Bytes(), nil
}

// encodeFrame returns a frame that says v.
func encodeFrame(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(body) > MaxFrame {
		return nil, fmt.Errorf("%d bytes are more than a frame of %d may have", len(body), MaxFrame)
	}
	return headed(body), nil
}

// headed returns a frame with that JSON.
func headed(body []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(make([]byte, 0, frameHead+len(body)), uint32(len(body))), body...)
}

// writeFrame sends a frame, or returns an error if the peer takes too long to read it: the connection is then
// unusable.
func writeFrame(conn net.Conn, frame []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(frameTime)); err != nil {
		return err
	}
	_, err := conn.Write(frame)
	return err
}

// decode reads one JSON value strictly: a field that v does not have is an error, and so is anything after the value.
// No data leaves v as it is.
func decode(data []byte, v any) error {
	if len(data) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%w: %w", ErrFrame, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more than one value", ErrFrame)
	}
	return nil
}

// checkHello returns why a peer with this hello is rejected. who is the peer's role, mine this end's.
func checkHello(frame []byte, who, mine string) error {
	var h hello
	if err := json.Unmarshal(frame, &h); err != nil || h.Protocol == 0 {
		return fmt.Errorf("%w: the %s does not say hello", ErrFrame, who)
	}
	if h.Protocol != Protocol {
		e := Errorf(CodeProtocol, "the %s speaks version %d of the control protocol, this %s version %d", who, h.Protocol, mine, Protocol)
		e.Help = "use the rlhost program that the job was started with"
		return e
	}
	return nil
}
