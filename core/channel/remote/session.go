package remote

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/core/shm"
)

// maxCalls is the most requests of one client that wait at a time.
const maxCalls = 1 << 14

// maxUnread is the most replies with items that a client may have without having used them: more than its clients in any language keep.
const maxUnread = 3 * maxCalls

// session is one client.
type session struct {
	server  *Server
	socket  *shm.Socket
	conn    *ipc.Conn
	greeted bool
	orderly bool    // it has said that it ends
	request request // that is handled

	mu      sync.Mutex
	gone    bool
	over    sync.Cond        // of calls that end after gone
	calls   map[uint32]*call // that wait, by their seq
	free    []*call
	own     map[uint64]owned // regions that it refers to
	unread  []delivery       // that it has perhaps not used, the oldest first
	acked   uint32           // replies with items that it has used
	frame   []byte
	unsent  []unsent // that its socket had no room for, the oldest first
	sending bool     // a goroutine sends them
	writers sync.WaitGroup
}

// owned is a client's part in a region.
type owned struct {
	refs  int
	items int // that it got, of the refs
	bytes int64
}

// delivery is a reply with items that the client has perhaps not used.
type delivery struct {
	key    string
	items  []channel.Item
	unsent bool
}

type unsent struct {
	frame []byte
	file  *region // whose file belongs to it, or nil
}

// call is a request that may wait.
type call struct {
	channel.Call
	op    op
	seq   uint32
	flags flags
	timer *time.Timer
}

func newSession(s *Server, socket *shm.Socket, conn *ipc.Conn) *session {
	c := &session{server: s, socket: socket, conn: conn, calls: map[uint32]*call{}, own: map[uint64]owned{}}
	c.over.L = &c.mu
	return c
}

// serve answers requests until the client disconnects, or breaks the rules, which is an error.
func (c *session) serve() error {
	buf := make([]byte, maxRequest)
	for {
		n, files, err := c.socket.Receive(buf)
		for _, f := range files {
			_ = f.Close() // no request has one
		}
		if err == nil {
			err = c.request.parse(buf[:n])
		}
		if err == nil {
			err = c.handle(&c.request)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// handle does one request. An error disconnects the client, which might wait for ever for its answer.
func (c *session) handle(r *request) error {
	if !c.greeted {
		return c.greet(r)
	}
	if err := c.note(r); err != nil {
		return err
	}
	switch r.op {
	case opPut, opGet, opBatch:
		return c.start(r)
	case opPutBack:
		return c.putBack(r)
	case opPeek:
		c.peek(r)
	case opAlloc:
		c.alloc(r)
	case opMap:
		c.sendFile(r)
	case opFree:
		return c.releaseAll(r.data)
	case opCancel:
		c.cancel(uint32(r.region))
	case opStat:
		c.stat(r)
	case opStop:
		c.server.memory.Close()
		c.answer(r, nil)
	case opBye:
		c.orderly = true
		return io.EOF // the client reads until the server closes: data that was sent is gone where a socket is closed with unread data
	default:
		return fmt.Errorf("%w: operation %d", errFrame, r.op)
	}
	return nil
}

// greet answers the first request, which must be opHello of this version.
func (c *session) greet(r *request) error {
	var err error
	switch {
	case r.op != opHello:
		err = fmt.Errorf("%w: operation %d before hello", errFrame, r.op)
	case r.size != Version:
		err = fmt.Errorf("the client speaks version %d, the server of the channel version %d", r.size, Version)
	}
	c.greeted = true
	c.answer(r, err)
	return err
}

// note takes what every request may say beside its own matter.
func (c *session) note(r *request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	read := int(int32(r.ack - c.acked))
	if read > len(c.unread) {
		return fmt.Errorf("%w: it has used %d replies of %d", errFrame, read, len(c.unread))
	}
	if read > 0 { // a frame of another thread may have been faster
		clear(c.unread[:read]) // the collector may have their data
		c.unread, c.acked = c.unread[read:], r.ack
	}
	if len(c.unread) > maxUnread {
		return fmt.Errorf("%w: %d replies that it has not used", errFrame, len(c.unread))
	}
	if r.release == 0 {
		return nil
	}
	return c.release(r.release)
}

// release ends one reference of the client to a region, with mu held.
func (c *session) release(id uint64) error {
	o := c.own[id]
	if o.refs == 0 {
		return fmt.Errorf("%w: region %d is not the client's", errFrame, id)
	}
	o.refs--
	if o.items > 0 {
		o.items--
		c.server.held.Add(-o.bytes)
	}
	c.set(id, o)
	c.server.regions.drop(id, 1)
	return nil
}

// set notes the client's part in a region, with mu held.
func (c *session) set(id uint64, o owned) {
	if o.refs == 0 {
		delete(c.own, id)
		return
	}
	c.own[id] = o
}

func (c *session) releaseAll(ids []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for ; len(ids) >= 8; ids = ids[8:] {
		if err := c.release(binary.LittleEndian.Uint64(ids)); err != nil {
			return err
		}
	}
	return nil
}

// item returns the item of a request. A region of the client's is the channel's from then on. A wrong one is an error.
func (c *session) item(r *request) (channel.Item, error) {
	if r.region == 0 {
		return channel.Item{Weight: r.weight, Data: slices.Clone(r.data)}, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	o, x := c.own[r.region], c.server.regions.find(r.region)
	if o.refs == 0 || r.size > uint64(x.seg.Size()) {
		return channel.Item{}, fmt.Errorf("%w: %d bytes of region %d", errFrame, r.size, r.region)
	}
	o.refs--
	if o.items > 0 { // it got it as an item, and passes it on
		o.items--
		c.server.held.Add(-o.bytes)
	}
	c.set(r.region, o)
	return channel.Item{Weight: r.weight, Data: x.seg.Bytes()[:r.size:r.size], Region: r.region}, nil
}

// start begins a call.
func (c *session) start(r *request) error {
	var item channel.Item
	if r.op == opPut {
		var err error
		if item, err = c.item(r); err != nil {
			return err
		}
	}
	k, err := c.newCall(r)
	if err != nil {
		if item.Region != 0 {
			c.server.regions.drop(item.Region, 1)
		}
		return err
	}
	kinds := [...]channel.Kind{opPut: channel.Put, opGet: channel.Get, opBatch: channel.GetBatch}
	k.op, k.seq, k.flags = r.op, r.seq, r.flags
	k.Kind, k.Key, k.NoWait, k.Item, k.Items, k.Roomy = kinds[r.op], string(r.key), r.wait == 0, item, nil, false
	k.Weight, k.Most = r.weight, int(r.most)
	wait := r.wait
	c.server.memory.Do(&k.Call)
	if wait > 0 {
		c.limit(k, r.seq, time.Duration(wait))
	}
	return nil
}

// limit ends a call that still waits after a while.
func (c *session) limit(k *call, seq uint32, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[seq] == k {
		k.timer = time.AfterFunc(wait, func() { c.server.memory.Expire(&k.Call) })
	}
}

func (c *session) newCall(r *request) (k *call, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[r.seq] != nil || len(c.calls) >= maxCalls {
		return nil, fmt.Errorf("%w: request %d is under way, or %d are", errFrame, r.seq, maxCalls)
	}
	if n := len(c.free); n > 0 {
		k, c.free = c.free[n-1], c.free[:n-1]
	} else {
		k = &call{}
		k.Done = func(*channel.Call) { c.finish(k) }
	}
	c.calls[r.seq] = k
	return k, nil
}

// cancel ends a request that waits.
func (c *session) cancel(seq uint32) {
	c.mu.Lock()
	k := c.calls[seq]
	c.mu.Unlock()
	if k != nil { // only this goroutine takes calls into use again, so it is still that request's, or done
		c.server.memory.Cancel(&k.Call, channel.ErrCanceled)
	}
}

// finish answers a call that is done. It runs on the goroutine that has ended it.
func (c *session) finish(k *call) {
	if k.op == opPut && k.Err != nil && k.Item.Region != 0 {
		c.server.regions.drop(k.Item.Region, 1)
	}
	if k.flags&flagEarly != 0 && k.Err != nil {
		c.server.memory.Lose(1)
	}
	h := reply{op: k.op, seq: k.seq, status: statusOf(k.Err), count: uint32(len(k.Items))}
	if k.op == opPut && k.Roomy {
		h.flags |= flagRoom
	}
	spare := c.spareFor(k)
	packed, err := c.pack(k.Items)
	if err != nil {
		_ = c.server.memory.Restore(k.Key, k.Items...) // its key has been accepted
		k.Err, k.Items, h.count, h.status = err, nil, 0, statusOf(err)
	}
	c.mu.Lock()
	delete(c.calls, k.seq)
	defer c.mu.Unlock()
	if c.gone {
		c.keep(k, spare, packed)
		return
	}
	if len(k.Items) > 0 {
		c.deliver(k, &h)
	}
	x := spare
	if packed != nil {
		x = packed
		h.flags |= flagPacked
	}
	if x != nil {
		h.spare, h.size = x.id, uint32(x.seg.Size()>>pageShift)
		c.set(x.id, owned{refs: 1, bytes: int64(x.seg.Size())})
	}
	frame := h.append(c.frame[:0])
	switch {
	case k.Err != nil:
		frame = append(frame, k.Err.Error()...)
	case packed == nil:
		frame = appendItems(frame, k.Items, false)
	}
	c.frame = frame
	c.send(frame, nil)
	if k.timer != nil {
		k.timer.Stop()
	} else {
		k.Item = channel.Item{}
		c.free = append(c.free, k) // without a timer, which might still end the next request
	}
}

// keep leaves the items of a call that has ended after its client to end, which puts them back in their order. mu is held.
func (c *session) keep(k *call, regions ...*region) {
	if len(k.Items) > 0 {
		c.deliver(k, &reply{})
		c.unread[len(c.unread)-1].unsent = true
	}
	for _, x := range regions {
		if x != nil {
			c.server.regions.drop(x.id, 1)
		}
	}
	c.over.Signal()
}

// spareFor returns the region that the reply to a put brings for the client's next item, or nil.
func (c *session) spareFor(k *call) *region {
	if k.flags&flagNext == 0 || k.Err != nil || k.Item.Region == 0 {
		return nil
	}
	x, err := c.server.regions.alloc(len(k.Item.Data))
	if err != nil {
		return nil // it asks for one, and is told why there is none
	}
	return x
}

// pack returns a region with items that are too many for a frame, or nil where they fit.
func (c *session) pack(items []channel.Item) (*region, error) {
	size := replyHead + len(items)*itemHead
	for _, i := range items {
		if i.Region == 0 {
			size += len(i.Data)
		}
	}
	if size <= maxReply {
		return nil, nil
	}
	x, err := c.server.regions.alloc(size)
	if err == nil {
		appendItems(x.seg.Bytes()[:0], items, false)
	}
	return x, err
}

// deliver notes what the client has from now on, with mu held.
func (c *session) deliver(k *call, h *reply) {
	c.unread = append(c.unread, delivery{key: k.Key, items: k.Items})
	for _, i := range k.Items {
		if i.Region == 0 {
			continue
		}
		o := c.own[i.Region]
		o.refs, o.items, o.bytes = o.refs+1, o.items+1, int64(len(i.Data))
		c.own[i.Region] = o
		if c.server.held.Add(o.bytes) > c.server.options.Limits.Bytes/2 {
			h.flags |= flagCopy
		}
	}
}

func (c *session) putBack(r *request) error {
	item, err := c.item(r)
	if err != nil {
		return err
	}
	c.answer(r, c.server.memory.Restore(string(r.key), item))
	return nil
}

// peek answers with an item that stays. The client copies it from its region.
func (c *session) peek(r *request) {
	var items []channel.Item
	err := c.server.memory.Peeked(string(r.key), func(i channel.Item) {
		items = []channel.Item{i}
		if i.Region != 0 {
			c.server.regions.share(i.Region)
		}
	})
	if err != nil {
		c.answer(r, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := items[0].Region; id != 0 {
		o := c.own[id]
		o.refs++
		c.own[id] = o
	}
	c.frame = (&reply{op: r.op, seq: r.seq, count: 1, flags: flagCopy}).append(c.frame[:0])
	c.frame = appendItems(c.frame, items, false)
	c.send(c.frame, nil)
}

// alloc answers with a region for an item.
func (c *session) alloc(r *request) {
	most := c.server.options.Limits.Bytes
	if r.size == 0 || r.size > uint64(most) {
		c.answer(r, fmt.Errorf("%w: it has %d bytes, the channel takes %d", channel.ErrTooLarge, r.size, most))
		return
	}
	x, err := c.server.regions.alloc(int(r.size))
	if err != nil {
		c.answer(r, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(x.id, owned{refs: 1, bytes: int64(x.seg.Size())})
	c.frame = (&reply{op: r.op, seq: r.seq, spare: x.id, size: uint32(x.seg.Size() >> pageShift)}).append(c.frame[:0])
	c.send(c.frame, nil)
}

// sendFile answers with the file of a region of the client's.
func (c *session) sendFile(r *request) {
	c.mu.Lock()
	o, x := c.own[r.region], c.server.regions.find(r.region)
	if o.refs == 0 {
		c.mu.Unlock()
		c.answer(r, fmt.Errorf("%w: region %d is not the client's", channel.ErrInvalid, r.region))
		return
	}
	defer c.mu.Unlock()
	c.frame = (&reply{op: r.op, seq: r.seq, spare: x.id, size: uint32(x.seg.Size() >> pageShift), flags: flagFile}).append(c.frame[:0])
	c.send(c.frame, x)
}

// maxKeys is the most keys that a status tells of.
const maxKeys = 64

// statusReply is the answer to opStat.
type statusReply struct {
	channel.Stat
	Name string            `json:"name"`
	Most []channel.KeyStat `json:"keys_with_items"`
}

func (c *session) stat(r *request) {
	m := c.server.memory
	text, err := json.Marshal(statusReply{m.Now(string(r.key)), c.server.options.Name, m.Keys(maxKeys)})
	if err != nil {
		c.answer(r, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frame = append((&reply{op: r.op, seq: r.seq}).append(c.frame[:0]), text...)
	c.send(c.frame, nil)
}

// answer answers a request without items.
func (c *session) answer(r *request, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frame = (&reply{op: r.op, seq: r.seq, status: statusOf(err)}).append(c.frame[:0])
	if err != nil {
		c.frame = append(c.frame, err.Error()...)
	}
	c.send(c.frame, nil)
}

// send sends a frame, with mu held. Where the socket has no room, a goroutine sends it later: the client may not read before it has
// written all that it wants to write.
func (c *session) send(frame []byte, file *region) {
	if !c.sending {
		var err error
		if file == nil {
			err = c.socket.Send(frame)
		} else {
			err = c.socket.Send(frame, file.seg.FD())
		}
		if err == nil {
			return
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			_ = c.socket.Close() // ends serve
			return
		}
		c.sending = true
		c.writers.Go(c.sendUnsent)
	}
	if file != nil {
		c.server.regions.share(file.id) // until it is sent
	}
	c.unsent = append(c.unsent, unsent{slices.Clone(frame), file})
}

func (c *session) sendUnsent() {
	for {
		c.mu.Lock()
		if len(c.unsent) == 0 {
			c.sending = false
			c.mu.Unlock()
			return
		}
		u := c.unsent[0]
		c.unsent[0] = unsent{}
		c.unsent = c.unsent[1:]
		c.mu.Unlock()
		var rights []byte
		if u.file != nil {
			rights = syscall.UnixRights(u.file.seg.FD())
		}
		_, _, err := c.conn.WriteMsgUnix(u.frame, rights, nil)
		if u.file != nil {
			c.server.regions.drop(u.file.id, 1)
		}
		if err != nil {
			_ = c.socket.Close() // ends serve
			return
		}
	}
}

// end forgets a client. Its calls end. Items that it has not used are put back if it has said that it ends; else they are lost, and so are
// the ones in regions that it held.
func (c *session) end() {
	c.mu.Lock()
	c.gone = true // nothing is sent from now on
	calls := make([]*call, 0, len(c.calls))
	for _, k := range c.calls {
		calls = append(calls, k)
	}
	c.mu.Unlock()
	_ = c.socket.Close() // it may be closed
	c.writers.Wait()
	for _, k := range calls {
		c.server.memory.Cancel(&k.Call, channel.ErrCanceled)
	}
	c.mu.Lock()
	for len(c.calls) > 0 { // another goroutine is about to end them
		c.over.Wait()
	}
	c.mu.Unlock()
	lost := 0
	for _, d := range slices.Backward(c.unread) {
		lost += c.forget(d)
	}
	for id, o := range c.own {
		if !c.orderly {
			lost += o.items
		}
		c.server.held.Add(-int64(o.items) * o.bytes)
		c.server.regions.drop(id, o.refs)
	}
	if lost > 0 {
		c.server.memory.Lose(lost)
		c.server.options.Log.Warn("channel: a client has died with items", "channel", c.server.options.Name, "process", c.conn.Peer.PID, "items", lost)
	}
}

// forget ends a delivery that the client has perhaps not used, and returns how many items of it are lost.
func (c *session) forget(d delivery) (lost int) {
	if !c.orderly && !d.unsent {
		for _, i := range d.items {
			c.unhold(i, 0) // it is counted here
		}
		return len(d.items)
	}
	back := make([]channel.Item, 0, len(d.items))
	for _, i := range d.items {
		if c.unhold(i, 1) {
			back = append(back, i)
		}
	}
	_ = c.server.memory.Restore(d.key, back...) // its key has been accepted
	return 0
}

// unhold takes an item out of what the client holds in regions, with so many of its references. It reports false for one whose region
// the client has given back: its data may be another item's by now.
func (c *session) unhold(i channel.Item, refs int) bool {
	if i.Region == 0 {
		return true
	}
	o := c.own[i.Region]
	if o.items == 0 {
		return false
	}
	o.refs, o.items = o.refs-refs, o.items-1
	c.server.held.Add(-o.bytes)
	c.set(i.Region, o)
	return true
}
