package rpc

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

func TestWrap_IsProtobufs(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 70000} {
		value := bytes.Repeat([]byte("x"), n)
		want, err := proto.Marshal(wrapperspb.Bytes(value))
		if err != nil {
			t.Fatal(err)
		}
		message := wrap(value)
		if got := message[messagePrefix:]; !bytes.Equal(got, want) {
			t.Errorf("%d bytes: got %d, want %d", n, len(got), len(want))
		}
		if got, err := unwrap(message[messagePrefix:]); err != nil || !bytes.Equal(got, value) {
			t.Errorf("%d bytes come back as %d, %v", n, len(got), err)
		}
	}
}

func TestUnwrap_SkipsWhatItDoesNotKnowAndRefusesNonsense(t *testing.T) {
	for _, test := range []struct {
		body, want string
		ok         bool
	}{
		{"\x0a\x01a", "a", true},
		{"\x10\x96\x01\x0a\x01a\x1a\x02zz\x25....\x29........", "a", true},
		{"\x0a\x01a\x0a\x01b", "b", true},
		{"\x0a\x02a", "", false},
		{"\x0a", "", false},
		{"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "", false},
		{"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "", false},
		{"\x10", "", false},
		{"\x25...", "", false},
		{"\x0b", "", false},
		{"\xff", "", false},
	} {
		got, err := unwrap([]byte(test.body))
		if (err == nil) != test.ok || string(got) != test.want {
			t.Errorf("%q: got %q, %v", test.body, got, err)
		}
	}
	for _, message := range []string{"", "\x00\x00\x00\x00", "\x01\x00\x00\x00\x00", "\x00\x00\x00\x00\x01", "\x00\x00\x00\x00\x00x"} {
		if _, err := read(strings.NewReader(message), 9); err == nil {
			t.Errorf("%q: no error", message)
		}
	}
}
