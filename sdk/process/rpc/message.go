package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// messagePrefix is the size of a gRPC message's prefix: a compression flag and the length.
const messagePrefix = 5

// valueField is the number of BytesValue's one field.
const valueField = 1

// maxText bounds the text of an error in bytes.
const maxText = 256 << 10

var errMessage = errors.New("the request is no google.protobuf.BytesValue")

// wrap makes a gRPC message of a BytesValue.
func wrap(value []byte) []byte {
	to := make([]byte, messagePrefix, messagePrefix+1+binary.MaxVarintLen64+len(value))
	if len(value) > 0 {
		to = protowire.AppendBytes(protowire.AppendTag(to, valueField, protowire.BytesType), value)
	}
	binary.BigEndian.PutUint32(to[1:], uint32(len(to)-messagePrefix))
	return to
}

// unwrap returns the value of a BytesValue. It skips unknown fields.
func unwrap(message []byte) (value []byte, err error) {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, errMessage
		}
		message = message[n:]
		if field == valueField && kind == protowire.BytesType {
			value, n = protowire.ConsumeBytes(message)
		} else {
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return nil, errMessage
		}
		message = message[n:]
	}
	return value, nil
}

// read reads the one message of a request, of at most limit bytes.
func read(r io.Reader, limit int) ([]byte, error) {
	var prefix [messagePrefix]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil || prefix[0] != 0 {
		return nil, &Error{Code: codeInvalid, Message: errMessage.Error()}
	}
	n := binary.BigEndian.Uint32(prefix[1:])
	if int64(n) > int64(limit) {
		return nil, &Error{Code: codeExhausted, Message: fmt.Sprintf("a request of %d bytes, at most %d", n, limit)}
	}
	message, err := io.ReadAll(io.LimitReader(r, int64(n)+1))
	if err != nil || len(message) != int(n) {
		return nil, &Error{Code: codeInvalid, Message: errMessage.Error()}
	}
	return message, nil
}

// escape encodes bytes other than printable ASCII as percent signs and digits, as gRPC does in error texts.
func escape(text string) string {
	const digits = "0123456789ABCDEF"
	to := make([]byte, 0, len(text))
	for _, c := range []byte(text[:min(len(text), maxText)]) {
		if c >= ' ' && c <= '~' && c != '%' {
			to = append(to, c)
		} else {
			to = append(to, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(to)
}
