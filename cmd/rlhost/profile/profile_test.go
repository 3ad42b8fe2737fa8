package profile_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rlhost/rlhost/cmd/rlhost/profile"
	"github.com/rlhost/rlhost/core/env"
)

// Everything that a profile says adds up to the measured time: the stacks, the file of pprof and the lines for flame graphs.
func TestRun_AddsUp(t *testing.T) {
	o := profile.Options{Path: "../testdata/guests/faulty.wasm", Source: env.DefaultSource(), Envs: 64, Time: 300 * time.Millisecond}
	r, err := profile.Run(t.Context(), o, "")
	if err != nil {
		t.Fatal(err)
	}
	sum, samples := r.Rest, 0
	for _, s := range r.Stacks {
		sum += s.Time
		samples += s.Samples
		if last := s.Places[len(s.Places)-1].Function; last != "rl_step" && last != "rl_reset" {
			t.Errorf("a stack of %+v begins with no call of the host", s.Places)
		}
	}
	if share := sum.Seconds() / r.Time.Seconds(); math.Abs(share-1) > 0.05 || samples < 50 || samples != r.Samples {
		t.Errorf("%d stacks with %d samples add up to %v of %v", len(r.Stacks), samples, sum, r.Time)
	}
	if !slices.ContainsFunc(r.Functions, func(f profile.Function) bool { return f.Name == "step" && f.Own > 0 && f.Own == f.Whole }) {
		t.Errorf("the guest's function is not among %+v", r.Functions)
	}
	if r.Exports[0].Name != "rl_step" || r.Fuel <= 0 || r.Plain <= 0 || r.EnvSteps%64 != 0 || r.EnvSteps == 0 {
		t.Errorf("%+v", r)
	}
	t.Logf("%d samples, %.1f ns an env step without them, %.1f with them, %.1f fuel", r.Samples, r.Plain, r.Sampled, r.Fuel)

	var folded, file bytes.Buffer
	if err := r.WriteFolded(&folded); err != nil {
		t.Fatal(err)
	}
	var lines time.Duration
	for line := range strings.Lines(folded.String()) {
		stack, ns, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil || !strings.HasPrefix(stack, "rl_") {
			t.Errorf("line %q", line)
		}
		lines += time.Duration(n)
	}
	if lines != sum-r.Rest {
		t.Errorf("the lines add up to %v of %v", lines, sum-r.Rest)
	}
	if err := r.WritePprof(&file); err != nil {
		t.Fatal(err)
	}
	if counted, took := pprof(t, &file); counted != r.Samples || took != sum-r.Rest {
		t.Errorf("the file has %d samples and %v, want %d and %v", counted, took, r.Samples, sum-r.Rest)
	}
}

// pprof reads a profile as pprof does, checks that what its samples name is there, and sums them up.
func pprof(t *testing.T, file io.Reader) (samples int, took time.Duration) {
	t.Helper()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	messages := fields(t, data)
	known := map[uint64]bool{}
	for _, location := range messages[4] {
		id, _ := protowire.ConsumeVarint(fields(t, location)[1][0])
		known[id] = true
	}
	for _, sample := range messages[2] {
		m := fields(t, sample)
		for ids := m[1][0]; len(ids) > 0; {
			id, n := protowire.ConsumeVarint(ids)
			if ids = ids[n:]; !known[id] {
				t.Fatalf("a sample names location %d, which is not there", id)
			}
		}
		count, n := protowire.ConsumeVarint(m[2][0])
		ns, _ := protowire.ConsumeVarint(m[2][0][n:])
		samples += int(count)
		took += time.Duration(ns)
	}
	if len(messages[6]) == 0 || len(messages[6][0]) != 0 {
		t.Error("the first string is not the empty one")
	}
	return samples, took
}

// fields returns the fields of a message by their numbers.
func fields(t *testing.T, m []byte) map[protowire.Number][][]byte {
	t.Helper()
	all := map[protowire.Number][][]byte{}
	for len(m) > 0 {
		number, kind, n := protowire.ConsumeTag(m)
		size := protowire.ConsumeFieldValue(number, kind, m[n:])
		if n < 0 || size < 0 {
			t.Fatalf("no message: %x", m)
		}
		value := m[n : n+size]
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(value)
		}
		all[number] = append(all[number], value)
		m = m[n+size:]
	}
	return all
}
