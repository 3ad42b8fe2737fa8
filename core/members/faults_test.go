package members

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rlhost/rlhost/internal/simnet"
)

// Settings of the simulation.
const (
	joiners = 4
	ttl     = 3 * time.Second
	every   = time.Second
	gap     = 300 * time.Millisecond
	faults  = 200 // a seed: at the end of each all has to be well
)

// joiner is one life of a host that joins.
type joiner struct {
	simnet.Process
	w      *world
	host   int
	key    string
	member *Member
	died   time.Duration
	hurt   time.Duration // when it or its way to the owner was last harmed
}

// runOwner is one life of the run's owner, with the server in it.
type runOwner struct {
	simnet.Process
	w     *world
	table *Owner
	born  time.Duration
}

// world is hosts that join a run, and what is to be true of the owner's table.
type world struct {
	simnet.Time
	t     *testing.T
	r     *rand.Rand
	to    [joiners]*simnet.Way
	from  [joiners]*simnet.Way
	hosts [joiners]*joiner
	owner *runOwner
	epoch uint32
	keys  int

	holder  map[uint64]string // the key of each incarnation that was granted
	over    map[uint64]bool   // incarnations that were lost
	lost    int
	joined  int
	earlier int // asked again with a later attempt
}

// ask carries a question to the owner, and its answer back.
func (j *joiner) ask(question func(o *runOwner), answer func(o *runOwner) func()) {
	w := j.w
	w.to[j.host].Send(&w.Time, w.r, func() {
		o := w.owner
		if o.Dead {
			return
		}
		o.Do(func() {
			question(o)
			back := answer(o)
			w.from[j.host].Send(&w.Time, w.r, func() {
				if !j.Dead {
					j.Do(back)
				}
			})
		})
	})
}

// Ask is MemberPort's.
func (j *joiner) Ask(r Request) {
	var grant Grant
	var err error
	if r.Attempt > 1 {
		j.w.earlier++
	}
	j.ask(func(o *runOwner) {
		if grant, err = o.table.Ask(r); err == nil {
			j.w.granted(grant, r.Key)
		}
	}, func(*runOwner) func() {
		g, failed := grant, err
		return func() {
			if failed == nil {
				j.member.Granted(j.w.Now, g)
			}
		}
	})
}

// Connect is MemberPort's.
func (j *joiner) Connect(g Grant) {
	var admitted bool
	j.ask(func(o *runOwner) { admitted = o.table.Admits(j.key) }, func(*runOwner) func() {
		yes := admitted
		return func() {
			if yes {
				j.member.Connected(j.w.Now, g.Incarnation)
			} else {
				j.member.Refused(j.w.Now, g.Incarnation)
			}
		}
	})
}

// Renew is MemberPort's.
func (j *joiner) Renew(incarnation uint64) {
	var err error
	j.ask(func(o *runOwner) {
		first, failed := o.table.Renew(j.key, incarnation)
		err = failed
		if err == nil && j.w.over[incarnation] {
			j.w.t.Fatalf("incarnation %x was lost and is here again", incarnation)
		}
		if first {
			j.w.joined++
		}
	}, func(*runOwner) func() {
		failed := err
		return func() {
			if errors.Is(failed, ErrStranger) {
				j.member.Stranger(j.w.Now, incarnation)
			} else {
				j.member.Renewed(j.w.Now, incarnation)
			}
		}
	})
}

// granted checks that no two keys get one incarnation.
func (w *world) granted(g Grant, key string) {
	if other, given := w.holder[g.Incarnation]; given && other != key {
		w.t.Fatalf("incarnation %x is granted to %s and %s", g.Incarnation, other, key)
	}
	w.holder[g.Incarnation] = key
}

func (w *world) newOwner() {
	w.epoch++
	w.owner = &runOwner{w: w, born: w.Now, table: NewOwner(Options{Epoch: w.epoch, Version: "1.2.0", Most: 2 * joiners, TTL: ttl, Join: 10 * time.Second, Gap: gap})}
}

func (w *world) newHost(host int) {
	w.keys++
	j := &joiner{w: w, host: host, key: fmt.Sprint("key", w.keys), hurt: w.Now}
	w.hosts[host] = j
	j.member = NewMember(w.Now, j, MemberOptions{Request: Request{Key: j.key, Attempt: 1, Name: "node", Version: "1.3.1"}, Every: every, Grace: 10 * time.Second, Abandon: time.Hour})
}

// work is what a host does each 5 ms.
func (w *world) work(host int) {
	if j := w.hosts[host]; !j.Dead && j.Stops == 0 && j.member.Deadline() <= w.Now {
		j.member.Tick(w.Now)
	}
}

// pulse is what the owner does each 100 ms: a question to the server, which answers at once where both run.
func (w *world) pulse() {
	o := w.owner
	if o.Dead || o.Stops > 0 {
		return
	}
	for _, h := range o.table.Pulse(w.Now) {
		w.lost++
		w.over[h.Grant.Incarnation] = true
		for host, j := range w.hosts {
			if j.key != h.Key || j.Dead || j.Stops > 0 || j.member.Incarnation() != h.Grant.Incarnation {
				continue
			}
			if last := max(j.hurt, w.to[host].Hurt); w.Now-last > ttl+every && w.to[host].Cuts == 0 {
				w.t.Fatalf("%s is lost, and was well for %v", h.Grant.Name, w.Now-last)
			}
		}
	}
}

func (w *world) fault() {
	upTo := func(d time.Duration) time.Duration { return 10*time.Millisecond + time.Duration(w.r.Int64N(int64(d))) }
	host := w.r.IntN(joiners)
	j, o := w.hosts[host], w.owner
	switch kind := w.r.IntN(10); {
	case kind < 4:
		ways := [][]*simnet.Way{{w.to[host]}, {w.from[host]}, {w.to[host], w.from[host]}, append(w.to[:], w.from[:]...)}[w.r.IntN(4)]
		simnet.Hurt(&w.Time, simnet.AnyHurting(w.r), upTo(6*time.Second), ways...)
	case kind == 4 && !j.Dead:
		j.Dead, j.died = true, w.Now
		w.After(upTo(6*time.Second), func() { w.newHost(host) })
	case kind == 5 && !o.Dead && w.r.IntN(3) == 0:
		o.Dead = true
		w.After(upTo(6*time.Second), w.newOwner)
	case kind == 6:
		d := upTo(8 * time.Second)
		j.Stop(&w.Time, d)
		w.After(d, func() { j.hurt = w.Now })
	case kind > 6:
		o.Stop(&w.Time, upTo(8*time.Second))
	}
}

func simulate(t *testing.T, seed uint64, n int) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 0)), holder: map[uint64]string{}, over: map[uint64]bool{}}
	for host := range joiners {
		w.to[host], w.from[host] = &simnet.Way{}, &simnet.Way{}
	}
	w.newOwner()
	for host := range joiners {
		w.newHost(host)
		w.Every(5*time.Millisecond, func() { w.work(host) })
	}
	w.Every(100*time.Millisecond, w.pulse)
	for range n {
		w.fault()
		w.check()
		w.Pass(time.Duration(1+w.r.IntN(800)) * time.Millisecond)
	}
	w.Pass(20 * time.Second) // the last faults end
	w.settled()
	for _, j := range w.hosts[:2] {
		j.Dead = true
	}
	w.Pass(2*ttl + every)
	w.found(2)
	return w
}

// check is true at any time: no two row have one name, one incarnation or one key.
func (w *world) check() {
	seen := map[string]bool{}
	for _, h := range w.owner.table.Hosts() {
		for _, id := range []string{h.Grant.Name, fmt.Sprint(h.Grant.Incarnation), h.Key} {
			if seen[id] {
				w.t.Fatalf("%s stands in two row", id)
			}
			seen[id] = true
		}
	}
}

// settled is true once all is well: each living host is here with the incarnation that it knows, and nobody else is.
func (w *world) settled() {
	here := 0
	for _, h := range w.owner.table.Hosts() {
		if h.State == Here || h.State == Admitted {
			here++
		}
	}
	for host, j := range w.hosts {
		row := w.owner.table.hosts[j.key]
		if row == nil || row.State != Here || row.Grant.Incarnation != j.member.Incarnation() {
			w.t.Fatalf("host %d has incarnation %x, the owner has %+v", host, j.member.Incarnation(), row)
		}
		if pauses, over := j.member.Pauses(w.Now); pauses || over {
			w.t.Fatalf("host %d pauses although its owner is there", host)
		}
	}
	if here != joiners {
		w.t.Fatalf("%d hosts are here, want %d: %+v", here, joiners, w.owner.table.Hosts())
	}
}

// found is true a while after n hosts died: the owner has lost them and nobody else.
func (w *world) found(n int) {
	here := 0
	for _, h := range w.owner.table.Hosts() {
		if h.State == Here {
			here++
		}
	}
	if here != joiners-n {
		w.t.Fatalf("%d hosts are here after %d of %d died", here, n, joiners)
	}
}

// Hosts, the owner and their network are harmed in all ways at once.
func TestFaults_LivingHostsAreHereAndDeadOnesLost(t *testing.T) {
	var joined, lost, again int
	simnet.Seeds(t, faults, func(seed uint64, n int) {
		w := simulate(t, seed, n)
		joined, lost, again = joined+w.joined, lost+w.lost, again+w.earlier
	})
	t.Logf("%d joins, %d lost, %d asked again", joined, lost, again)
	if lost == 0 || again == 0 {
		t.Error("nobody was lost: the faults do no harm")
	}
}
