// Package tensorboard writes event files that TensorBoard reads: scalars of env steps, one record for each line of metrics.
//
//	f.Write(tensorboard.Header(time.Now()))
//	record := tensorboard.AppendEvent(nil, time.Now(), envSteps, []tensorboard.Scalar{{"losses/policy_loss", 0.1}})
//	f.Write(record)
//
// A file is a sequence of records, each with its length and checksums, so that a file whose last record is cut off is
// readable up to there; Whole says where that is. The formats are TensorFlow's TFRecord and the messages Event and Summary of
// tensorflow/core/util/event.proto and framework/summary.proto.
package tensorboard

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Scalar is one number by its tag, such as losses/policy_loss.
type Scalar struct {
	Tag   string
	Value float64 // written as float32; NaN and infinities are kept
}

// fileVersion is the content of a file's first record.
const fileVersion = "brain.Event:2"

// Fields of the messages.
const (
	eventWallTime = 1 // double, seconds since 1970
	eventStep     = 2 // int64
	eventVersion  = 3 // string
	eventSummary  = 5 // Summary

	summaryValue     = 1 // repeated Summary.Value
	valueTag         = 1 // string
	valueSimpleValue = 2 // float
	valueImage       = 4 // Summary.Image

	imageHeight  = 1 // int32
	imageWidth   = 2 // int32
	imageColours = 3 // int32, channels
	imageEncoded = 4 // bytes of a PNG or a GIF, which moves
)

// Image is a picture by its tag: the bytes of a PNG or of a GIF.
type Image struct {
	Tag           string
	Width, Height int
	Encoded       []byte
}

// MaxImage bounds the bytes of a picture.
const MaxImage = maxRecord / 2

// AppendImage appends a record with a picture of a step to dst.
func AppendImage(dst []byte, now time.Time, step uint64, i *Image) []byte {
	image := protowire.AppendVarint(protowire.AppendTag(nil, imageHeight, protowire.VarintType), uint64(i.Height))
	image = protowire.AppendVarint(protowire.AppendTag(image, imageWidth, protowire.VarintType), uint64(i.Width))
	image = protowire.AppendVarint(protowire.AppendTag(image, imageColours, protowire.VarintType), 3)
	image = protowire.AppendBytes(protowire.AppendTag(image, imageEncoded, protowire.BytesType), i.Encoded)
	value := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType), i.Tag)
	value = protowire.AppendBytes(protowire.AppendTag(value, valueImage, protowire.BytesType), image)
	return appendSummary(dst, now, step, protowire.AppendBytes(protowire.AppendTag(nil, summaryValue, protowire.BytesType), value))
}

// Header returns the first record of a file.
func Header(now time.Time) []byte {
	event := protowire.AppendTag(wallTime(now), eventVersion, protowire.BytesType)
	return appendRecord(nil, protowire.AppendString(event, fileVersion))
}

// AppendEvent appends a record with the scalars of a step to dst.
func AppendEvent(dst []byte, now time.Time, step uint64, scalars []Scalar) []byte {
	var summary, value []byte
	for _, s := range scalars {
		value = protowire.AppendTag(value[:0], valueTag, protowire.BytesType)
		value = protowire.AppendString(value, s.Tag)
		value = protowire.AppendTag(value, valueSimpleValue, protowire.Fixed32Type)
		value = protowire.AppendFixed32(value, math.Float32bits(float32(s.Value)))
		summary = protowire.AppendTag(summary, summaryValue, protowire.BytesType)
		summary = protowire.AppendBytes(summary, value)
	}
	return appendSummary(dst, now, step, summary)
}

// appendSummary appends a record of a step.
func appendSummary(dst []byte, now time.Time, step uint64, summary []byte) []byte {
	event := protowire.AppendTag(wallTime(now), eventStep, protowire.VarintType)
	event = protowire.AppendVarint(event, step)
	event = protowire.AppendTag(event, eventSummary, protowire.BytesType)
	return appendRecord(dst, protowire.AppendBytes(event, summary))
}

// wallTime begins an event.
func wallTime(now time.Time) []byte {
	event := protowire.AppendTag(nil, eventWallTime, protowire.Fixed64Type)
	return protowire.AppendFixed64(event, math.Float64bits(float64(now.UnixMicro())/1e6))
}

// A record is its length (u64), the length's checksum, the data, and the data's checksum (u32 each, little endian).
const (
	recordHead = 12
	recordTail = 4
	maxRecord  = 64 << 20
)

func appendRecord(dst, data []byte) []byte {
	at := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(len(data)))
	dst = binary.LittleEndian.AppendUint32(dst, checksum(dst[at:]))
	dst = append(dst, data...)
	return binary.LittleEndian.AppendUint32(dst, checksum(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is TFRecord's masked CRC-32C.
func checksum(b []byte) uint32 {
	crc := crc32.Checksum(b, castagnoli)
	return (crc>>15 | crc<<17) + 0xa282ead8
}

// Whole returns how many bytes of r, from its beginning, are whole and sound records.
func Whole(r io.Reader) (int64, error) {
	in, whole := bufio.NewReader(r), int64(0)
	for {
		n, err := readRecord(in)
		if errors.Is(err, io.EOF) || errors.Is(err, errDamaged) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		whole += n
	}
}

var errDamaged = errors.New("the record is damaged")

// readRecord returns the size of the next record. io.EOF and io.ErrUnexpectedEOF are returned as io.EOF.
func readRecord(in io.Reader) (int64, error) {
	var head [recordHead]byte
	if err := readFull(in, head[:]); err != nil {
		return 0, err
	}
	size := binary.LittleEndian.Uint64(head[:])
	if size > maxRecord || checksum(head[:8]) != binary.LittleEndian.Uint32(head[8:]) {
		return 0, errDamaged
	}
	data := make([]byte, size+recordTail)
	if err := readFull(in, data); err != nil {
		return 0, err
	}
	if checksum(data[:size]) != binary.LittleEndian.Uint32(data[size:]) {
		return 0, errDamaged
	}
	return recordHead + int64(len(data)), nil
}

func readFull(in io.Reader, b []byte) error {
	_, err := io.ReadFull(in, b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}
