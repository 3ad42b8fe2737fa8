package members

import (
	"errors"
	"fmt"
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
		g, err := o.Ask(request(key))
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
