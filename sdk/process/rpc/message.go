package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
)

// messagePrefix is how many bytes stand before a gRPC message: whether it is compressed, and its length.
const messagePrefix = 5

// bytesField is the tag of BytesValue's one field: number 1, length and bytes.
const bytesField = 1<<3 | 2

// maxText bounds the words of an error.
const maxText = 256 << 10

var errMessage = errors.New("the request is no google.protobuf.BytesValue")

// wrap makes a gRPC message of a BytesValue.
func wrap(value []byte) []byte {
	to := make([]byte, messagePrefix, messagePrefix+1+binary.MaxVarintLen64+len(value))
	if len(value) > 0 {
		to = binary.AppendUvarint(append(to, bytesField), uint64(len(value)))
		to = append(to, value...)
	}
	binary.BigEndian.PutUint32(to[1:], uint32(len(to)-messagePrefix))
	return to
}

// unwrap returns the value of a BytesValue in a gRPC message. Fields that it does not know it skips.
func unwrap(message []byte) (value []byte, err error) {
	if len(message) < messagePrefix || message[0] != 0 || int64(binary.BigEndian.Uint32(message[1:])) != int64(len(message)-messagePrefix) {
		return nil, errMessage
	}
	for b := message[messagePrefix:]; len(b) > 0; {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, errMessage
		}
		b = b[n:]
		size, skip := uint64(0), 0
		switch tag & 7 {
		case 0:
			_, skip = binary.Uvarint(b)
		case 1:
			size = 8
		case 2:
			size, skip = binary.Uvarint(b)
		case 5:
			size = 4
		default:
			return nil, errMessage
		}
		if skip < 0 || skip == 0 && tag&7 != 1 && tag&7 != 5 || size > uint64(len(b)-skip) {
			return nil, errMessage
		}
		if tag == bytesField {
			value = b[skip : skip+int(size)]
		}
		b = b[skip+int(size):]
	}
	return value, nil
}

// tooLong tells of a request that is longer than allowed as soon as it is known to be.
func tooLong(message []byte, limit int) error {
	if len(message) < messagePrefix {
		return nil
	}
	if n := binary.BigEndian.Uint32(message[1:]); int64(n) > int64(limit) || len(message)-messagePrefix > int(n) {
		return &Error{Code: codeExhausted, Message: fmt.Sprintf("a request of %d bytes, at most %d", n, limit)}
	}
	return nil
}

// responseHeaders begin every reply: ":status: 200" and "content-type: application/grpc", both with names of HPACK's
// static table, which is all that is used of HPACK (RFC 7541) for sending.
var responseHeaders = append([]byte{0x80 | 8, 0x0F, 31 - 15}, literal("application/grpc")...)

// literal encodes a string without Huffman coding.
func literal(s string) []byte { return append(appendLength(nil, len(s)), s...) }

// appendLength appends a number as HPACK writes it behind one bit.
func appendLength(to []byte, n int) []byte {
	const most = 1<<7 - 1
	if n < most {
		return append(to, byte(n))
	}
	return binary.AppendUvarint(append(to, most), uint64(n-most)) // groups of seven bits, the lowest first
}

// appendField appends a header field that is in no table and comes into none.
func appendField(to []byte, name, value string) []byte {
	to = append(append(to, 0), literal(name)...)
	return append(to, literal(value)...)
}

// statusFields are the fields that end a reply.
func statusFields(to []byte, code int, text string) []byte {
	to = appendField(to, "grpc-status", strconv.Itoa(code))
	if text == "" {
		return to
	}
	return appendField(to, "grpc-message", escape(text[:min(len(text), maxText)]))
}

// escape encodes what is not printable ASCII as percent signs and digits.
func escape(text string) string {
	const digits = "0123456789ABCDEF"
	to := make([]byte, 0, len(text))
	for _, c := range []byte(text) {
		if c >= ' ' && c <= '~' && c != '%' {
			to = append(to, c)
		} else {
			to = append(to, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(to)
}
