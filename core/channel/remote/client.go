package remote

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rlhost/rlhost/core/channel"
	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/shm"
)

// Codes of errors that clients meet. Each has a page in rlhost explain.
const (
	CodeNone     control.Code = "E110" // nobody serves a channel of that name
	CodeTooLarge control.Code = "E111"
	CodeInvalid  control.Code = "E112"
	CodeClosed   control.Code = "E113"
	CodeLost     control.Code = "E114" // the server has ended
)

// Client reaches a channel that another process serves. It implements channel.Channel: errors wrap that package's, or are *control.Error.
// The data of an item that it returns is the caller's.
type Client struct {
	name   string
	socket *shm.Socket
	reads  sync.WaitGroup

	mu      sync.Mutex
	seq     uint32
	ack     uint32
	got     []*asked // answers with items that ack does not count, the oldest first
	waiting map[uint32]*asked
	lost    error
	mapped  map[uint64]*shm.Segment
	frame   []byte
}

// asked is a request under way.
type asked struct {
	done chan struct{}
	used bool // its items have been handed to the caller
	answer
}

// answer is what has come, once done is closed.
type answer struct {
	head  reply
	items []channel.Item
	sizes []int
	text  []byte
	file  *os.File
	err   error
}

var _ channel.Channel = (*Client)(nil)

// leaveTime is how long a client that ends waits for the server.
const leaveTime = 2 * time.Second

// maxMapped is how many regions a client keeps mapped.
const maxMapped = 256

// Connect returns a client of the channel of a name.
func Connect(name string) (*Client, error) {
	path, err := SocketPath(name)
	if err != nil {
		return nil, coded(err)
	}
	socket, err := shm.Dial(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, control.Errorf(CodeNone, "there is no channel %q: rlhost channel serve %s, or Channel.create in Python", name, name)
	}
	if err != nil {
		return nil, err
	}
	c := &Client{name: name, socket: socket, waiting: map[uint32]*asked{}, mapped: map[uint64]*shm.Segment{}}
	c.reads.Go(c.read)
	if _, err := c.ask(context.Background(), &request{op: opHello, size: Version}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close ends the connection. Items that were on their way to this client are put back.
func (c *Client) Close() error {
	c.mu.Lock()
	c.use()
	if c.lost == nil && c.write(&request{op: opBye}) == nil {
		c.lost = fmt.Errorf("this client of channel %q: %w", c.name, net.ErrClosed)
		_ = c.socket.SetReceiveDeadline(time.Now().Add(leaveTime)) // a closed socket is what this waits for
	}
	c.mu.Unlock()
	c.reads.Wait()
	err := c.socket.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(err, c.unmap())
}

// unmap closes all mappings, with mu held.
func (c *Client) unmap() error {
	var errs []error
	for _, s := range c.mapped {
		errs = append(errs, s.Close())
	}
	clear(c.mapped)
	return errors.Join(errs...)
}

// write sends a request, with mu held.
func (c *Client) write(r *request) error {
	r.ack = c.ack
	c.frame = r.append(c.frame[:0])
	return c.socket.Send(c.frame)
}

// read reads replies until the connection ends.
func (c *Client) read() {
	buf := make([]byte, maxReply)
	for {
		n, files, err := c.socket.Receive(buf)
		if err == nil {
			err = c.take(buf[:n], files)
		}
		if err != nil {
			c.lose(err)
			return
		}
	}
}

// lose ends everything that waits.
func (c *Client) lose(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost == nil {
		c.lost = control.Errorf(CodeLost, "the channel %q has ended: %v", c.name, why)
	}
	for _, a := range c.waiting {
		a.err = c.lost
		close(a.done)
	}
	clear(c.waiting)
}

// take hands a reply to its caller.
func (c *Client) take(frame []byte, files []*os.File) error {
	var a answer
	if err := a.head.parse(frame); err != nil {
		return err
	}
	var err error
	body := frame[replyHead:]
	switch {
	case a.head.status != 0:
		a.err = c.uncoded(a.head.status, string(body))
	case a.head.flags&flagPacked != 0 || a.head.count == 0:
		a.text = append(a.text, body...)
	default:
		a.items, a.sizes, err = parseItems(append([]byte(nil), body...), int(a.head.count))
	}
	if len(files) > 0 {
		a.file = files[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return err // the server puts back what comes now
	}
	w := c.waiting[a.head.seq]
	if w == nil {
		return errors.Join(err, fmt.Errorf("an answer to request %d, which nobody made", a.head.seq))
	}
	if (a.head.op == opGet || a.head.op == opBatch) && a.head.status == 0 {
		c.got = append(c.got, w)
	}
	delete(c.waiting, a.head.seq)
	w.answer = a
	close(w.done)
	return err
}

// uncoded returns the error of a refusal.
func (c *Client) uncoded(s status, text string) error {
	is := error(errOther)
	if int(s) <= len(statuses) {
		is = statuses[s-1]
	}
	return coded(&refusal{fmt.Sprintf("channel %q: %s", c.name, text), is})
}

type refusal struct {
	text string
	is   error
}

// Error returns the reason from there.
func (r *refusal) Error() string { return r.text }

// Unwrap returns this process's error of that kind.
func (r *refusal) Unwrap() error { return r.is }

// coded gives an error its code, where it has one.
func coded(err error) error {
	for code, is := range map[control.Code]error{CodeTooLarge: channel.ErrTooLarge, CodeInvalid: channel.ErrInvalid, CodeClosed: channel.ErrClosed} {
		if errors.Is(err, is) {
			return &codedError{control.Errorf(code, "%v", err), err}
		}
	}
	return err
}

// codedError is an error of a channel with its code.
type codedError struct {
	said *control.Error
	is   error
}

// Error returns the reason.
func (e *codedError) Error() string { return e.said.Error() }

// Unwrap returns both.
func (e *codedError) Unwrap() []error { return []error{e.said, e.is} }

// begin sends a request.
func (c *Client) begin(r *request) (*asked, error) {
	a := &asked{done: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return nil, c.lost
	}
	c.seq++
	r.seq = c.seq
	c.waiting[r.seq] = a
	c.use()
	if err := c.write(r); err != nil {
		delete(c.waiting, r.seq)
		return nil, err
	}
	return a, nil
}

// use counts the items that callers have had by now, with mu held: the next request says so. One that dies before it loses them.
func (c *Client) use() {
	n := 0
	for n < len(c.got) && c.got[n].used {
		n++
	}
	c.ack += uint32(n)
	c.got = slices.Delete(c.got, 0, n)
}

// ask makes a request and waits for the answer. Where ctx ends before, the request is canceled; where it had ended before, its result counts.
func (c *Client) ask(ctx context.Context, r *request) (*asked, error) {
	if len(r.key) > channel.MaxKey {
		return nil, coded(fmt.Errorf("%w: a key of %d bytes, at most %d", channel.ErrInvalid, len(r.key), channel.MaxKey))
	}
	a, err := c.begin(r)
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a, a.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	_ = c.write(&request{op: opCancel, region: uint64(r.seq)}) // a lost server ends the wait too
	c.mu.Unlock()
	<-a.done
	if errors.Is(a.err, channel.ErrCanceled) {
		return nil, context.Cause(ctx)
	}
	return a, a.err
}

// items returns the items of an answer, with their data.
func (c *Client) items(a *asked, err error) ([]channel.Item, error) {
	if err != nil {
		return nil, err
	}
	defer func() {
		c.mu.Lock()
		a.used = true
		c.mu.Unlock()
	}()
	if a.head.flags&flagPacked != 0 {
		table, err := c.copyOut(a.head.spare, -1)
		if err == nil {
			a.items, a.sizes, err = parseItems(table, int(a.head.count))
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range a.items {
		x := &a.items[i]
		if x.Region == 0 {
			continue
		}
		if x.Data, err = c.copyOut(x.Region, a.sizes[i]); err != nil {
			return nil, err
		}
		x.Region = 0
	}
	return a.items, nil
}

// copyOut returns a copy of the first bytes of a region, of all with -1, and gives the region back.
func (c *Client) copyOut(id uint64, size int) (data []byte, err error) {
	err = c.with(id, func(memory []byte) error {
		if size < 0 {
			size = len(memory)
		}
		if size > len(memory) {
			return fmt.Errorf("an item of %d bytes in a region of %d", size, len(memory))
		}
		data = append([]byte(nil), memory[:size]...)
		return c.write(&request{op: opFree, data: binary.LittleEndian.AppendUint64(nil, id)})
	})
	return data, err
}

// with calls fn with the memory of a region of this client's, with mu held.
func (c *Client) with(id uint64, fn func(memory []byte) error) error {
	for {
		c.mu.Lock()
		if seg := c.mapped[id]; seg != nil {
			defer c.mu.Unlock()
			return fn(seg.Bytes())
		}
		c.mu.Unlock()
		if err := c.mapRegion(id); err != nil {
			return err
		}
	}
}

// mapRegion maps a region. Where many are mapped, they are unmapped first: nobody uses them while mu is not held.
func (c *Client) mapRegion(id uint64) error {
	a, err := c.ask(context.Background(), &request{op: opMap, region: id})
	if err != nil {
		return err
	}
	if a.file == nil {
		return fmt.Errorf("channel %q: region %d came without a file", c.name, id)
	}
	fd, err := shm.Take(a.file)
	if err != nil {
		return err
	}
	seg, err := shm.Open(fd, shm.ReadWrite)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mapped) >= maxMapped {
		err = c.unmap()
	}
	if c.mapped[id] != nil { // another goroutine was faster
		return errors.Join(err, seg.Close())
	}
	c.mapped[id] = seg
	return err
}

// Put adds an item. See channel.Channel.
func (c *Client) Put(ctx context.Context, key string, i channel.Item) error {
	return c.put(ctx, key, i, opPut, -1)
}

// TryPut adds an item if there is room. See channel.Channel.
func (c *Client) TryPut(ctx context.Context, key string, i channel.Item) error {
	return c.put(ctx, key, i, opPut, 0)
}

func (c *Client) put(ctx context.Context, key string, i channel.Item, do op, wait int64) error {
	r := &request{op: do, key: []byte(key), weight: i.Weight, wait: wait, data: i.Data}
	if len(i.Data) > MaxInline {
		id, err := c.fill(ctx, i.Data)
		if err != nil {
			return err
		}
		r.region, r.size, r.data = id, uint64(len(i.Data)), nil
	}
	_, err := c.ask(ctx, r)
	return err
}

// fill returns a region with that data.
func (c *Client) fill(ctx context.Context, data []byte) (uint64, error) {
	a, err := c.ask(ctx, &request{op: opAlloc, size: uint64(len(data))})
	if err != nil {
		return 0, err
	}
	return a.head.spare, c.with(a.head.spare, func(memory []byte) error {
		copy(memory, data)
		return nil
	})
}

// Get takes an item. See channel.Channel.
func (c *Client) Get(ctx context.Context, key string) (channel.Item, error) {
	return c.one(c.items(c.ask(ctx, &request{op: opGet, key: []byte(key), wait: -1})))
}

// TryGet takes an item if there is one. See channel.Channel.
func (c *Client) TryGet(ctx context.Context, key string) (channel.Item, error) {
	return c.one(c.items(c.ask(ctx, &request{op: opGet, key: []byte(key)})))
}

// Peek returns an item that stays. See channel.Channel.
func (c *Client) Peek(ctx context.Context, key string) (channel.Item, error) {
	return c.one(c.items(c.ask(ctx, &request{op: opPeek, key: []byte(key)})))
}

func (c *Client) one(items []channel.Item, err error) (channel.Item, error) {
	if err == nil && len(items) != 1 {
		err = fmt.Errorf("channel %q: %d items where one was asked for", c.name, len(items))
	}
	if err != nil {
		return channel.Item{}, err
	}
	return items[0], nil
}

// GetBatch takes a batch. See channel.Channel.
func (c *Client) GetBatch(ctx context.Context, key string, b channel.Batch) ([]channel.Item, error) {
	if b.Most < 0 || b.Wait < 0 {
		return nil, coded(fmt.Errorf("%w: a batch of %d items within %v", channel.ErrInvalid, b.Most, b.Wait))
	}
	wait := cmp.Or(b.Wait, -1*time.Nanosecond)
	return c.items(c.ask(ctx, &request{op: opBatch, key: []byte(key), weight: b.Weight, most: uint32(b.Most), wait: int64(wait)}))
}

// PutBack puts items back. See channel.Channel.
func (c *Client) PutBack(ctx context.Context, key string, items ...channel.Item) error {
	for i := len(items) - 1; i >= 0; i-- {
		if err := c.put(ctx, key, items[i], opPutBack, -1); err != nil {
			return err
		}
	}
	return nil
}

// Stat tells of the channel. See channel.Channel.
func (c *Client) Stat(ctx context.Context, key string) (s channel.Stat, err error) {
	a, err := c.ask(ctx, &request{op: opStat, key: []byte(key)})
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(a.text, &s)
}

// Stop closes the channel. See channel.Channel.
func (c *Client) Stop(ctx context.Context) error {
	_, err := c.ask(ctx, &request{op: opStop})
	return err
}
