package tape

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlhost/rlhost/core/env"
)

func ring(t *testing.T, o Options) (*Ring, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "recording")
	r, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r, dir
}

func reel(t *testing.T, dir string) *Reel {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// size returns how many bytes the files of a ring have.
func size(t *testing.T, dir string) (all int64) {
	t.Helper()
	paths, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		stat, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		all += stat.Size()
	}
	return all
}

// fill writes steps of a stream, with a key where one is due, until so many bytes have been written.
func fill(s *Stream, from uint64, total int) (at uint64) {
	actions, key := bytes.Repeat([]byte{7}, 1000), bytes.Repeat([]byte{9}, 5000)
	for at = from; total > 0; at++ {
		if s.Due() {
			s.Write(Key, at, key[:1000], key[1000:])
			s.Keyed()
			total -= len(key)
		}
		s.Write(Actions, at, actions, nil)
		total -= len(actions)
	}
	s.End(at, Episode{Env: 3, Length: 5, Number: uint32(at)})
	return at
}

func TestRing_GivesBackWhatItGot(t *testing.T) {
	r, dir := ring(t, Options{Limit: Least})
	a, b := r.Stream(Head{Name: "rollout", Envs: 2, Agents: 1, Seed: 5}), r.Stream(Head{Name: "other", Envs: 1, Agents: 3})
	a.Write(Resets, 0, []byte{1, 1}, []byte{2})
	b.Write(Actions, 0, []byte("bb"), nil)
	a.Write(Actions, 0, []byte("aa"), []byte("cc"))
	want := Episode{Env: 1, Agent: 2, Terminated: true, Length: 3, Number: 4, Return: -1.5, PolicyVersion: 6, Step: 1 << 40}
	a.End(7, want)
	b.Follows(a, 9)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	x := reel(t, dir)
	if len(x.Streams) != 2 || !x.Streams[0].Whole || x.Streams[0].Seed != 5 || len(x.Streams[0].Records) != 2 {
		t.Fatalf("%+v", x.Streams)
	}
	got, err := x.Read(&x.Streams[0].Records[1])
	if err != nil || string(got) != "aacc" {
		t.Errorf("%q %v", got, err)
	}
	if e := x.Episodes(); len(e) != 1 || e[0].Episode != want || e[0].At != 7 || e[0].Of != x.Streams[0] {
		t.Errorf("%+v", e)
	}
	if second := x.Streams[1]; x.Before(second) != x.Streams[0] || second.AfterAt != 9 || x.Before(x.Streams[0]) != nil {
		t.Errorf("%+v continues %+v", second.Head, x.Before(second))
	}
}

// However much is recorded, the newest stays, the files keep to the limit, and each file can be read without the older ones.
func TestRing_KeepsTheNewest(t *testing.T) {
	var gone int
	r, dir := ring(t, Options{Limit: Least, Gone: func(string) { gone++ }})
	s := r.Stream(Head{Name: "rollout", Envs: 1, Agents: 1})
	at := uint64(0)
	for range 40 {
		at = fill(s, at, 100_000)
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := size(t, dir); got > Least+Least/parts {
			t.Fatalf("the files have %d bytes, want %d at most", got, Least)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	x := reel(t, dir)
	list := x.Episodes()
	if gone == 0 || len(list) == 0 || len(list) == 40 || list[len(list)-1].At != at || x.Streams[0].Whole {
		t.Fatalf("%d files have gone, %d episodes are kept, the beginning %t", gone, len(list), x.Streams[0].Whole)
	}
	if second := x.Streams[0].Records[1]; second.Kind != Key { // the first one was too much for the file before
		t.Errorf("the second record of the oldest file is %q, want a key", second.Kind)
	}
	if kept := size(t, dir); kept < Least/2 {
		t.Errorf("%d bytes are kept of %d", kept, Least)
	}
}

// A run that continues adds to the same ring, and its streams are others.
func TestRing_ContinuesInAnotherProcess(t *testing.T) {
	r, dir := ring(t, Options{Limit: Least})
	fill(r.Stream(Head{Name: "first", Envs: 1, Agents: 1}), 0, 5000)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Create(dir, Options{Limit: Least})
	if err != nil {
		t.Fatal(err)
	}
	fill(again.Stream(Head{Name: "second", Envs: 1, Agents: 1, Life: Life(1, 0)}), 0, 5000)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	x := reel(t, dir)
	if len(x.Streams) != 2 || x.Streams[0].Name != "first" || x.Streams[1].Name != "second" || x.Streams[1].Life != 1<<16 || !x.Streams[1].Whole {
		t.Errorf("%+v", x.Streams)
	}
}

// A killed process leaves a file that ends anywhere: what is whole of it is read.
func TestReel_ReadsATornFile(t *testing.T) {
	r, dir := ring(t, Options{Limit: Least})
	s := r.Stream(Head{Name: "rollout", Envs: 1, Agents: 1})
	fill(s, 0, 3000)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, fileName(1))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		x := reel(t, dir)
		for _, s := range x.Streams {
			for i := range s.Records {
				if _, err := x.Read(&s.Records[i]); err != nil {
					t.Fatalf("cut at %d: %v", n, err)
				}
			}
		}
		if len(x.Episodes()) != 0 {
			t.Fatalf("cut at %d: an episode that is not whole", n)
		}
	}
}

// A full disk ends the recording, and nothing else.
func TestRing_EndsWhereItCannotWrite(t *testing.T) {
	full, told := errors.New("full"), 0
	r, _ := ring(t, Options{Limit: Least, Fails: func(err error) {
		if told++; !errors.Is(err, full) {
			t.Error(err)
		}
	}, write: func(*os.File, []byte) error { return full }})
	s := r.Stream(Head{Name: "rollout", Envs: 1, Agents: 1})
	fill(s, 0, 3*bufferBytes)
	fill(s, 0, 3*bufferBytes)
	s.Close()
	if err := r.Close(); err != nil || told != 1 {
		t.Errorf("it was told %d times, %v", told, err)
	}
}

func TestRing_CostsNothingWhereThereIsNone(t *testing.T) {
	var r *Ring
	s := r.Stream(Head{})
	s.Follows(nil, 0)
	s.Close()
	if err := errors.Join(r.Flush(), r.Close()); s != nil || err != nil {
		t.Error(s, err)
	}
	if _, err := Create(t.TempDir(), Options{Limit: Least - 1}); err == nil {
		t.Error("a ring of less than the least is made")
	}
}

// Nothing in a file makes a reader fail otherwise than by an error.
func FuzzReel(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "recording")
	r, err := Create(dir, Options{Limit: Least})
	if err != nil {
		f.Fatal(err)
	}
	fill(r.Stream(Head{Name: "rollout", Envs: 1, Agents: 1}), 0, 2000)
	if err := r.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, fileName(1)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Fuzz(func(t *testing.T, file []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fileName(1)), file, 0o644); err != nil {
			t.Fatal(err)
		}
		x, err := Open(dir)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Error(err)
			}
			return
		}
		for _, s := range x.Streams {
			for i := range s.Records {
				if _, err := x.Read(&s.Records[i]); err != nil {
					t.Error(err)
				}
			}
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A fault of the environments is found again with its environment and reason; the end of their process is none.
func TestReel_HasFailures(t *testing.T) {
	r, dir := ring(t, Options{Limit: Least})
	w := NewWriter(nil, r.Stream(Head{Name: "rollout", Envs: 2, Agents: 1, Change: 4}))
	w.Lost(&env.Fault{Kind: env.FaultLost, Err: errors.New("its process has died")})
	w.Lost(fmt.Errorf("a trial: %w", &env.Fault{Kind: env.FaultTrap, Env: 1, Err: errors.New("out of bounds")}))
	w.Lost(&env.OutputError{Env: 0, Call: "rl_step", Err: errors.New("reward is NaN")})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	x := reel(t, dir)
	list := x.Failures()
	if len(list) != 2 || list[0].Failure != (Failure{1, "out of bounds"}) || list[1].Failure != (Failure{0, "reward is NaN"}) || list[0].Of.Change != 4 {
		t.Errorf("%+v", list)
	}
	if n := len(x.Streams[0].Records); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}
