package objects

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/rlhost/rlhost/core/objects/wire"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/plugins/objects/store"
)

// client is one connection and its session.
type client struct {
	store   *store.Store
	socket  *shm.Socket
	session *store.Session
	greeted bool

	mu      sync.Mutex
	free    []*call          // ready for later requests
	waiting map[uint32]*call // calls that may wait, by their Seq
}

// call is one pending request.
type call struct {
	op      store.Op
	request wire.Request
	reply   wire.Reply
	frame   []byte
}

// maxRange is how many entries of one track and the greatest rank fit into a reply; with several tracks fewer fit.
const maxRange = (wire.MaxFrame - wire.HeadBytes) / (16 + wire.MaxTracks*(8+8*wire.MaxRank))

// serve answers requests until the client disconnects, which is io.EOF, or breaks the rules.
func (c *client) serve() error {
	buf := make([]byte, wire.MaxFrame)
	for {
		n, files, err := c.socket.Receive(buf)
		for _, f := range files {
			_ = f.Close() // no request has one
		}
		if err == nil {
			err = c.handle(buf[:n])
		}
		if err != nil {
			return err
		}
	}
}

// handle starts the request of a frame. It returns an error if the client must be disconnected: after a bad frame it
// might wait forever for an answer.
func (c *client) handle(frame []byte) error {
	k := c.newCall()
	if err := wire.ParseRequest(&k.request, frame); err != nil {
		k.reply = wire.Reply{Op: k.request.Op, Seq: k.request.Seq}
		c.answer(k, err)
		return err
	}
	r := &k.request
	k.reply = wire.Reply{Op: r.Op, Seq: r.Seq, Object: r.Object}
	if !c.greeted {
		return c.greet(k)
	}
	if kind := kindOf(r.Op); kind != 0 {
		c.start(k, kind)
		return nil
	}
	if r.Op == wire.OpCancel {
		c.cancel(uint32(r.Index))
		c.recycle(k)
		return nil
	}
	c.answer(k, c.manage(k))
	return nil
}

// greet answers the first request, which must be OpHello of this version.
func (c *client) greet(k *call) error {
	r := &k.request
	var err error
	switch {
	case r.Op != wire.OpHello:
		err = fmt.Errorf("operation %d before hello: %w", r.Op, wire.ErrRequest)
	case r.Index != wire.Version:
		err = fmt.Errorf("the client speaks version %d, this server version %d: %w", r.Index, wire.Version, wire.ErrRequest)
	}
	k.reply.Index = wire.Version
	c.greeted = true
	c.answer(k, err)
	return err
}

// kindOf returns the store's operation for a request, or 0.
func kindOf(op wire.Op) store.OpKind {
	kinds := [...]store.OpKind{
		wire.OpOpen: store.OpOpen, wire.OpNew: store.OpNew, wire.OpSpare: store.OpSpare, wire.OpCommit: store.OpCommit,
		wire.OpAbort: store.OpAbort, wire.OpRead: store.OpRead, wire.OpLatest: store.OpLatest, wire.OpPop: store.OpPop,
		wire.OpBatch: store.OpBatch, wire.OpRelease: store.OpRelease, wire.OpDelete: store.OpDelete,
		wire.OpLock: store.OpLock, wire.OpUnlock: store.OpUnlock,
	}
	if int(op) >= len(kinds) {
		return 0
	}
	return kinds[op]
}

// start begins an operation of the store, which may end much later.
func (c *client) start(k *call, kind store.OpKind) {
	r, op := &k.request, &k.op
	op.Kind, op.Object, op.Claim, op.Index, op.Release, op.Wait = kind, r.Object, r.Claim, r.Index, r.Release, r.Wait
	op.Name, op.Values, op.Indices = r.Name, r.Values, r.Indices
	op.Most = min(r.Most, maxRange)
	op.Next, op.Revoke = r.Flags&wire.Next != 0, r.Flags&wire.Revoke != 0
	op.Lend = op.Next
	op.Alone, op.Tear, op.Mend = r.Flags&wire.Alone != 0, r.Flags&wire.Tear != 0, r.Flags&wire.Mend != 0
	if op.Done == nil {
		op.Done = func(*store.Op) { c.finish(k) }
	}
	if r.Wait != 0 {
		c.mu.Lock()
		c.waiting[r.Seq] = k
		c.mu.Unlock()
	}
	c.session.Do(op)
}

// cancel ends a request that waits. Only the goroutine of serve takes calls into use, and it runs cancel, so the call
// found still belongs to the request, or is over.
func (c *client) cancel(seq uint32) {
	c.mu.Lock()
	k := c.waiting[seq]
	c.mu.Unlock()
	if k != nil {
		c.session.Cancel(&k.op, wire.ErrCanceled)
	}
}

// finish answers a request whose operation is over. It runs on the goroutine that completed the operation.
func (c *client) finish(k *call) {
	op := &k.op
	if k.request.Wait != 0 {
		c.mu.Lock()
		delete(c.waiting, k.request.Seq)
		c.mu.Unlock()
	}
	if k.request.Flags&wire.OneWay != 0 {
		c.recycle(k)
		return
	}
	if op.Kind == store.OpOpen && op.Err == nil {
		c.answerOpen(k)
		return
	}
	k.reply.Block, k.reply.Claim, k.reply.Index = op.Block, op.Claim, op.Index
	k.reply.Spare, k.reply.SpareBlock = op.Spare, op.SpareBlock
	if op.Lent || op.Torn {
		k.reply.Spare = 1
	}
	k.reply.Views = op.Views
	c.answer(k, op.Err)
}

// answerOpen sends an object's layout and, the first time, its memory.
func (c *client) answerOpen(k *call) {
	k.reply.Object = k.op.Object
	layout, err := c.store.Layout(k.op.Object)
	if err != nil || k.request.Flags&wire.NoFile != 0 {
		k.reply.Layout = layout
		c.answer(k, err)
		return
	}
	k.reply.Layout = layout
	file, err := c.store.File(k.op.Object, k.request.Flags&wire.Write != 0)
	if err != nil {
		c.answer(k, err)
		return
	}
	c.answer(k, nil, int(file.Fd()))
	_ = file.Close() // the kernel holds its own reference
}

// manage handles requests about whole objects.
func (c *client) manage(k *call) error {
	r := &k.request
	switch r.Op {
	case wire.OpCreate:
		id, err := c.create(r)
		k.reply.Object = id
		return err
	case wire.OpRemove:
		return c.store.Remove(r.Object)
	case wire.OpStat:
		return c.stat(k)
	case wire.OpList:
		k.reply.Names = c.store.Names(r.Name, r.After, (wire.MaxFrame-wire.HeadBytes)/(wire.MaxName+1))
		return nil
	}
	return fmt.Errorf("operation %d: %w", r.Op, wire.ErrRequest)
}

// create makes an object, or makes one larger.
func (c *client) create(r *wire.Request) (uint32, error) {
	if r.Flags&wire.Grow != 0 {
		return c.store.Grow(r.Name, r.Config)
	}
	return c.store.Create(r.Name, r.Config, r.Flags&wire.Reuse != 0)
}

func (c *client) stat(k *call) error {
	stat, err := c.store.Stat(k.request.Object)
	if err != nil {
		return err
	}
	text, err := json.Marshal(stat)
	k.reply.Text = string(text)
	return err
}

// answer sends a reply. A client that does not read its replies is disconnected.
func (c *client) answer(k *call, err error, files ...int) {
	if err != nil {
		k.reply.Status, k.reply.Text = wire.StatusOf(err), shorten(err.Error())
	}
	frame, err := wire.AppendReply(k.frame[:0], &k.reply)
	if err != nil {
		frame = c.tooLong(k, err)
	}
	k.frame = frame
	if err := c.socket.Send(frame, files...); err != nil {
		_ = c.socket.Close() // ends serve
	}
	c.recycle(k)
}

// tooLong releases the claims of a reply that is too long, and returns a refusal.
func (c *client) tooLong(k *call, err error) []byte {
	if len(k.reply.Views) > 0 {
		c.session.Do(&store.Op{Kind: store.OpRelease, Claim: k.reply.Claim, Done: func(*store.Op) {}})
	}
	err = fmt.Errorf("%w: %w: ask for fewer entries at a time", wire.ErrLimit, err)
	refusal := wire.Reply{Op: k.reply.Op, Seq: k.reply.Seq, Status: wire.StatusOf(err), Text: err.Error()}
	frame, _ := wire.AppendReply(k.frame[:0], &refusal) // short
	return frame
}

// newCall returns a reset call.
func (c *client) newCall() *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		k := c.free[n-1]
		c.free = c.free[:n-1]
		return k
	}
	return &call{}
}

func (c *client) recycle(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, k)
}

// shorten bounds the text of an error, which may quote the client.
func shorten(text string) string { return text[:min(len(text), 2000)] }
