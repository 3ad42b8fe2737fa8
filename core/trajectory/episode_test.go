package trajectory

import (
	"hash/fnv"
	"math"
	"testing"

	"github.com/rlhost/rlhost/hostabi"
)

func TestEpisodeIsReadAsWritten(t *testing.T) {
	for _, want := range []Episode{
		{},
		{Return: 475.5, Length: 500, Env: 31},
		{Return: -21, Length: 1, Env: math.MaxUint32, Terminated: true},
		{Return: math.MaxFloat32, Length: math.MaxUint32, Env: 7, Terminated: true},
		{Return: float32(math.Inf(-1)), Length: 1 << 31},
		{Return: 1, Env: 3, Terminated: true, Task: 1},
		{Env: math.MaxUint32, Task: TrialTask},
		{Return: 3, Policy: PolicyID("rival")},
	} {
		m := want.Message()
		if got := EpisodeOf(&m); got != want {
			t.Errorf("read %+v, want %+v", got, want)
		}
	}
}

func TestEpisodeMessageHasTheStatedLayout(t *testing.T) {
	m := Episode{Return: 2, Length: 3, Env: 4, Terminated: true}.Message()
	want := hostabi.Message{Inline: [2]uint64{3<<32 | 0x40000000, 1<<32 | 4}}
	if m != want {
		t.Errorf("message %+v, want %+v", m, want)
	}
}

func TestEpisodeKeepsNaN(t *testing.T) {
	m := Episode{Return: float32(math.NaN())}.Message()
	if e := EpisodeOf(&m); !math.IsNaN(float64(e.Return)) {
		t.Errorf("return = %v, want NaN", e.Return)
	}
}

// The hash is FNV-1a's, which programs in other languages compute too.
func TestPolicyIDIsFNV1a(t *testing.T) {
	for name, want := range map[string]uint32{"": 0x811c9dc5, "a": 0xe40c292c, "foobar": 0xbf9cf968} { // published vectors
		if got := PolicyID(name); got != want {
			t.Errorf("PolicyID(%q) = %#x, want %#x", name, got, want)
		}
	}
	for _, name := range []string{"", "main", "rival", "main@12", "Läufer"} {
		h := fnv.New32a()
		h.Write([]byte(name))
		if got, want := PolicyID(name), h.Sum32(); got != want {
			t.Errorf("PolicyID(%q) = %#x, want %#x", name, got, want)
		}
	}
}
