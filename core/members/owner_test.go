package members

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

func newTestOwner() *Owner {
	return NewOwner(Options{Epoch: 7, Version: "1.2.0", Most: 3, TTL: ttl, Join: 10 * time.Second, Gap: gap})
}

func request(key string) Request {
	return Request{Key: key, Attempt: 1, Name: "node", Version: "1.2.0", Cores: 4, Memory: 1 << 30}
}

// pass lets a time pass in which owner and server are awake.
func pass(o *Owner, from, d time.Duration) (lost []Host) {
	for at := from; at <= from+d; at += 100 * time.Millisecond {
		lost = append(lost, o.Pulse(at)...)
	}
	return lost
}

func TestOwner_RefusesAnotherVersionByName(t *testing.T) {
	o := newTestOwner()
	for version, fits := range map[string]bool{"1.2.0": true, "1.9.3": true, "2.0.0": false, "0.9.0": false, "": false} {
		r := request("key" + version)
		r.Version = version
		_, err := o.Ask(r)
		if (err == nil) != fits {
			t.Errorf("version %q: %v", version, err)
		}
		if version != "" && err != nil && (!errors.Is(err, ErrVersion) || !strings.Contains(err.Error(), version) || !strings.Contains(err.Error(), "1.2.0")) {
			t.Errorf("the error does not name both versions: %v", err)
		}
	}
}

// Where all hosts must compute alike, one that does not is refused, unless it computes nothing.
func TestOwner_RefusesOtherKernels(t *testing.T) {
	o := NewOwner(Options{Version: "1.0.0", Most: 4, Kernels: "avx512"})
	for _, c := range []struct {
		kernels string
		slots   int
		want    error
	}{{"avx512", 4, nil}, {"avx2", 4, ErrKernels}, {"", 1, ErrKernels}, {"avx2", 0, nil}} {
		_, err := o.Ask(Request{Key: "key" + c.kernels + strconv.Itoa(c.slots), Attempt: 1, Name: "a", Version: "1.0.0", Kernels: c.kernels, Slots: c.slots})
		if !errors.Is(err, c.want) {
			t.Errorf("kernels %q with %d slots: %v, want %v", c.kernels, c.slots, err, c.want)
		}
	}
}

func TestOwner_AnswersTheSameAttemptAlike(t *testing.T) {
	o := newTestOwner()
	first, err := o.Ask(request("a"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := o.Ask(request("a"))
	if err != nil || again != first {
		t.Errorf("asked again: %+v, want %+v: %v", again, first, err)
	}
	later := request("a")
	later.Attempt = 2
	second, err := o.Ask(later)
	if err != nil || second.Incarnation <= first.Incarnation || second.Name != first.Name {
		t.Errorf("a later attempt: %+v after %+v: %v", second, first, err)
	}
	if _, err := o.Ask(request("a")); !errors.Is(err, ErrOld) {
		t.Errorf("an earlier attempt: %v", err)
	}
	if _, err := o.Renew("a", first.Incarnation); !errors.Is(err, ErrStranger) {
		t.Errorf("the former incarnation renews: %v", err)
	}
	if joins, err := o.Renew("a", second.Incarnation); !joins || err != nil {
		t.Errorf("the first lease: %v, %v", joins, err)
	}
	other, err := o.Ask(request("b"))
	if err != nil || other.Name != "node-2" {
		t.Errorf("another host of that name: %+v, %v", other, err)
	}
}

func TestOwner_LosesAHostAfterItsLease(t *testing.T) {
	o := newTestOwner()
	g, _ := o.Ask(request("a"))
	pass(o, 0, time.Second)
	if _, err := o.Renew("a", g.Incarnation); err != nil {
		t.Fatal(err)
	}
	if lost := pass(o, time.Second, ttl); len(lost) != 0 {
		t.Errorf("%v are lost within the lease", lost)
	}
	// The owner sleeps for a minute: that is nobody's fault.
	if lost := o.Pulse(time.Minute); len(lost) != 0 {
		t.Errorf("%v are lost while the owner sleeps", lost)
	}
	if lost := pass(o, time.Minute, time.Second); len(lost) != 1 || lost[0].State != Lost || o.Admits("a") {
		t.Errorf("lost %+v", lost)
	}
	if _, err := o.Renew("a", g.Incarnation); !errors.Is(err, ErrStranger) {
		t.Errorf("a lost host renews: %v", err)
	}
}

// Many who have the token and never come take no room from the others for longer than the time to join.
func TestOwner_StrangersTakeNoRoomForLong(t *testing.T) {
	o := newTestOwner()
	here, _ := o.Ask(request("here"))
	if _, err := o.Renew("here", here.Incarnation); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range 10_000 {
		if _, err := o.Ask(request(fmt.Sprint("key", i))); errors.Is(err, ErrFull) {
			refused++
		}
	}
	if refused != 9_998 || len(o.Hosts()) != 3 {
		t.Errorf("%d of 10000 are refused, %d rows", refused, len(o.Hosts()))
	}
	for at := time.Duration(0); at < 12*time.Second; at += time.Second {
		if _, err := o.Renew("here", here.Incarnation); err != nil {
			t.Fatal(err)
		}
		pass(o, at, time.Second)
	}
	if _, err := o.Ask(request("late")); err != nil || len(o.Hosts()) != 2 {
		t.Errorf("after the time to join: %v, %d rows", err, len(o.Hosts()))
	}
}

// A host that left makes room for one that comes.
func TestOwner_ForgetsTheOldestThatEnded(t *testing.T) {
	o := newTestOwner()
	for i := range 10 {
		key := fmt.Sprint("key", i)
		r := request(key)
		r.Name = key
		g, err := o.Ask(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Leave(key, g.Incarnation+1); !errors.Is(err, ErrStranger) {
			t.Errorf("another incarnation leaves: %v", err)
		}
		if err := o.Leave(key, g.Incarnation); err != nil {
			t.Fatal(err)
		}
	}
	if hosts := o.Hosts(); len(hosts) != 3 || hosts[0].State != Left {
		t.Errorf("%+v", hosts)
	}
}

// A machine whose program is started again has its name again; one that only was away for long finds it taken.
func TestOwner_GivesTheNameOfALostHostAgain(t *testing.T) {
	o := newTestOwner()
	first, err := o.Ask(request("first"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Renew("first", first.Incarnation); err != nil {
		t.Fatal(err)
	}
	beside, err := o.Ask(request("beside"))
	if err != nil || beside.Name != "node-2" {
		t.Errorf("beside a host that is here: %q, %v", beside.Name, err)
	}
	if lost := pass(o, 0, o.options.TTL+time.Second); len(lost) != 1 {
		t.Fatalf("%d hosts are lost, want 1", len(lost))
	}
	next, err := o.Ask(request("next"))
	if err != nil || next.Name != "node" || next.Incarnation <= first.Incarnation {
		t.Errorf("after a lost host: %+v, %v", next, err)
	}
	if _, err := o.Renew("first", first.Incarnation); !errors.Is(err, ErrStranger) || o.Knows("first") {
		t.Errorf("the lost host renews: %v", err)
	}
	if again, err := o.Ask(request("first")); err != nil || again.Name == "node" {
		t.Errorf("the lost host is back as %q, %v", again.Name, err)
	}
}

func TestOwner_RefusesTextsThatAreNone(t *testing.T) {
	o := newTestOwner()
	for _, name := range []string{"", "a b", "a\n", strings.Repeat("a", MaxText+1)} {
		r := request("key")
		r.Name = name
		if _, err := o.Ask(r); !errors.Is(err, ErrInvalid) {
			t.Errorf("name %.10q: %v", name, err)
		}
	}
}

func TestOwner_BoundsWhatAHostOffers(t *testing.T) {
	many := map[string]string{}
	for i := range MaxLabels + 1 {
		many[fmt.Sprint("k", i)] = "v"
	}
	for what, c := range map[string]struct {
		slots  int
		labels map[string]string
		fits   bool
	}{
		"some":            {8, map[string]string{"gpu": "h100"}, true},
		"none":            {0, nil, true},
		"less than none":  {-1, nil, false},
		"too many slots":  {MaxSlots + 1, nil, false},
		"too many labels": {1, many, false},
		"an empty label":  {1, map[string]string{"gpu": ""}, false},
		"a space":         {1, map[string]string{"g pu": "x"}, false},
		"a long label":    {1, map[string]string{"gpu": strings.Repeat("x", MaxText+1)}, false},
	} {
		r := request("a")
		r.Slots, r.Labels = c.slots, c.labels
		if _, err := newTestOwner().Ask(r); (err == nil) != c.fits || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
