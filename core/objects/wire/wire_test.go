package wire

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/rlhost/rlhost/hostabi"
)

func values() []Value {
	return []Value{ValueOf(DType(hostabi.F32), 3, 4), ValueOf(Bytes, 9), ValueOf(U16)}
}

func config() Config {
	return Config{Capacity: 64, Spares: -1, Tracks: []Track{{Name: "obs", Bytes: 1 << 40}, {Bytes: 1, DType: U16}}}
}

func requests() []Request {
	return []Request{
		{Op: OpHello, Seq: 1, Index: Version, Name: "pid 1"},
		{Op: OpCreate, Flags: Reuse, Seq: 2, Name: "obs", Config: config()},
		{Op: OpOpen, Flags: Write, Seq: 3, Name: "obs", Wait: Forever},
		{Op: OpCommit, Flags: Next, Seq: 4, Object: 7, Claim: 1 << 60, Release: 5, Wait: time.Second, Values: values()},
		{Op: OpBatch, Seq: 5, Object: 7, Indices: []uint64{1, 1 << 63, 3}},
		{Op: OpBatch, Flags: Range, Seq: 6, Object: 7, Index: 9, Most: 12},
		{Op: OpList, Seq: 7, Name: "pre", After: "prefix"},
		{Op: OpPop, Seq: 1<<32 - 1, Object: 1<<32 - 1},
		{Op: OpCancel, Index: 4},
	}
}

func replies() []Reply {
	v := values()
	return []Reply{
		{Op: OpHello, Seq: 1, Index: Version, Claim: 1},
		{Op: OpPop, Seq: 2, Object: 3, Claim: 4, Index: 5, Views: []View{{Index: 5, Block: 6, Values: v}}},
		{Op: OpBatch, Seq: 2, Views: []View{{Index: 5, Block: 6, Values: v[:1]}, {Index: 6, Block: 1, Values: v[1:2]}}},
		{Op: OpCommit, Seq: 3, Index: 4, Spare: 5, SpareBlock: 6},
		{Op: OpOpen, Seq: 4, Object: 5, Layout: Layout{Capacity: 1, Blocks: 2, Size: 1 << 40, Columns: []Column{
			{At: 4096, Stride: 64, Track: Track{Name: "a", Bytes: 33, DType: U16}}, {Stride: 1}}}},
		{Op: OpList, Seq: 5, Names: []string{"a", "", "c"}},
		{Op: OpStat, Seq: 6, Text: "{}"},
		{Op: OpPop, Status: StatusOf(ErrEmpty), Seq: 7, Text: "object is empty"},
	}
}

func TestRequests_SurviveTheWire(t *testing.T) {
	var got Request
	for _, want := range requests() {
		frame, err := AppendRequest(nil, &want)
		if err != nil {
			t.Fatal(err)
		}
		if err := ParseRequest(&got, frame); err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
			t.Errorf("got %s\nwant %s", g, w)
		}
		for n := range frame {
			if err := ParseRequest(&got, frame[:n]); n < HeadBytes && !errors.Is(err, ErrFrame) {
				t.Errorf("%d bytes of operation %d = %v, want ErrFrame", n, want.Op, err)
			}
		}
	}
}

func TestReplies_SurviveTheWire(t *testing.T) {
	var got Reply
	for _, want := range replies() {
		frame, err := AppendReply(nil, &want)
		if err != nil {
			t.Fatal(err)
		}
		if err := ParseReply(&got, frame); err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		got.values, want.values = nil, nil
		if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
			t.Errorf("got %s\nwant %s", g, w)
		}
	}
}

func TestStatuses_AreTheSentinels(t *testing.T) {
	for _, want := range sentinels() {
		r := Reply{Status: StatusOf(fmt.Errorf("object %q: %w", "x", want)), Text: "the text"}
		if err := r.Err(); !errors.Is(err, want) || err.Error() != "the text" {
			t.Errorf("%v comes as %v", want, err)
		}
	}
	odd := Reply{Status: StatusOf(errors.New("odd")), Text: "odd"}
	if err := odd.Err(); err == nil || err.Error() != "odd" {
		t.Errorf("an error without a number comes as %v", err)
	}
	if err := (&Reply{Status: 255}).Err(); err == nil {
		t.Errorf("a status from the future is no error")
	}
	if StatusOf(nil) != OK || (&Reply{}).Err() != nil {
		t.Errorf("nil does not stay nil")
	}
}

func TestFrames_AreBounded(t *testing.T) {
	if _, err := AppendRequest(nil, &Request{Op: OpBatch, Indices: make([]uint64, MaxFrame/8)}); !errors.Is(err, ErrFrame) {
		t.Errorf("a batch that is too long = %v, want ErrFrame", err)
	}
	if _, err := AppendReply(nil, &Reply{Op: OpStat, Text: string(make([]byte, MaxFrame))}); !errors.Is(err, ErrFrame) {
		t.Errorf("a text that is too long = %v, want ErrFrame", err)
	}
	if err := ParseRequest(new(Request), make([]byte, MaxFrame+1)); !errors.Is(err, ErrFrame) {
		t.Errorf("a frame that is too long = %v, want ErrFrame", err)
	}
}

func TestParsing_DoesNotAllocateOnThePathOfPushAndPop(t *testing.T) {
	request, err := AppendRequest(nil, &Request{Op: OpCommit, Flags: Next, Values: values()})
	if err != nil {
		t.Fatal(err)
	}
	var r Request
	var out []byte
	reply := Reply{Op: OpPop, Views: []View{{Values: values()}}}
	if n := testing.AllocsPerRun(100, func() {
		_ = ParseRequest(&r, request)
		out, _ = AppendReply(out[:0], &reply)
	}); n != 0 {
		t.Errorf("a request and a reply allocate %v times, want 0", n)
	}
}

// A parsed frame can be written and parsed again, with the same result.
func FuzzRequest(f *testing.F) {
	for _, r := range requests() {
		frame, err := AppendRequest(nil, &r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		var r, again Request
		if ParseRequest(&r, frame) != nil {
			return
		}
		out, err := AppendRequest(nil, &r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if err := ParseRequest(&again, out); err != nil || !reflect.DeepEqual(r, again) {
			t.Errorf("%+v became %+v, %v", r, again, err)
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, r := range replies() {
		frame, err := AppendReply(nil, &r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		var r, again Reply
		if ParseReply(&r, frame) != nil {
			return
		}
		_ = r.Err()
		out, err := AppendReply(nil, &r)
		if err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		if err := ParseReply(&again, out); err != nil || fmt.Sprintf("%+v", r) != fmt.Sprintf("%+v", again) {
			t.Errorf("%+v became %+v, %v", r, again, err)
		}
	})
}
