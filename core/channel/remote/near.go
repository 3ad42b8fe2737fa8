package remote

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/ipc"
	"github.com/rlhost/rlhost/core/registry"
	names "github.com/rlhost/rlhost/core/registry/remote"
	"github.com/rlhost/rlhost/core/shm"
)

// NearOptions are what a Near is made with.
type NearOptions struct {
	Name string                       // of the channel
	Open func() (control.Line, error) // a line to the machine that serves the channel, where Carry has its other end
	Log  *slog.Logger
}

// Near serves a channel of another machine to the programs of this user, until Close. They find it by its name and cannot tell the difference: the
// channel's own server has the state, and counts what they lose. Regions here are copies of its regions.
type Near struct {
	*ipc.Server
	o       NearOptions
	regions *regions
	unname  context.CancelFunc
	named   sync.WaitGroup
}

const (
	nearClients = 1024
	nearKept    = 64 << 20 // most bytes of regions that nobody uses
)

// ServeNear begins to serve. The error is ipc.ErrInUse where this machine has a channel of that name.
func ServeNear(o NearOptions) (*Near, error) {
	path, err := SocketPath(o.Name)
	if err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	n := &Near{o: o, regions: newRegions(o.Name, nearKept)}
	n.Server, err = ipc.Listen(ipc.Config{
		Name: "channel " + o.Name, Path: path, Network: shm.Network, Sweep: socketPrefix + "*" + socketSuffix, Clients: nearClients, Ended: errEnded, Log: o.Log,
		Serve: n.serve, Refuse: func(c *ipc.Conn, why error) { n.refuse(c, why) },
	})
	if err != nil {
		return nil, fmt.Errorf("serve channel %q of another machine: %w", o.Name, err)
	}
	ctx, unname := context.WithCancel(context.Background())
	n.unname = unname
	name := map[string]string{names.Channels + o.Name: path}
	n.named.Go(func() { names.Announce(ctx, registry.Options{}, func() map[string]string { return name }) })
	return n, nil
}

// Close ends the serving, and disconnects the clients.
func (n *Near) Close() error {
	n.unname()
	n.named.Wait()
	return errors.Join(n.Server.Close(), n.regions.close())
}

// serve connects one client with the channel.
func (n *Near) serve(_ context.Context, conn *ipc.Conn) {
	line, err := n.o.Open()
	if err != nil {
		n.refuse(conn, fmt.Errorf("the run does not answer this machine: %w", err))
		return
	}
	socket, err := shm.SocketOf(conn.UnixConn)
	if err != nil {
		_ = line.Close() // the client is gone
		return
	}
	c := &nearClient{near: n, socket: socket, line: line, own: map[uint64]uint64{}}
	var both sync.WaitGroup
	both.Go(func() {
		c.said(c.down())
		_ = socket.Close() // ends up
	})
	c.said(c.up())
	_, _ = socket.Close(), line.Close() // ends down
	both.Wait()
	for id := range c.own {
		n.regions.drop(id, 1)
	}
}

// refuse tells a client why it is not served, after its hello.
func (n *Near) refuse(conn *ipc.Conn, why error) {
	socket, err := shm.SocketOf(conn.UnixConn)
	if err != nil {
		return // the client is gone
	}
	refuseClient(socket, why)
}

// nearClient is a client of Near.
type nearClient struct {
	near   *Near
	socket *shm.Socket
	line   control.Line

	mu  sync.Mutex
	own map[uint64]uint64 // the channel's regions that the client has, by the numbers of their copies
}

// said logs why a client is disconnected, unless it has ended as clients do.
func (c *nearClient) said(err error) {
	if errors.Is(err, errFrame) || errors.Is(err, errMessage) || errors.Is(err, errMemory) {
		c.near.o.Log.Warn("channel: client disconnected", "channel", c.near.o.Name, "err", err)
	}
}

// up brings requests to the channel.
func (c *nearClient) up() error {
	buf := make([]byte, maxRequest)
	var message []byte
	for {
		frame, file, err := receive(c.socket, buf)
		if file != nil {
			_ = file.Close() // no request has one
		}
		var r request
		if err == nil {
			err = r.parse(frame)
		}
		if err == nil {
			message, err = c.translate(&r, message[:0])
		}
		if err == nil {
			err = c.line.Send(message)
		}
		if err != nil {
			return err
		}
	}
}

// translate appends a request as the channel gets it: with the numbers of its own regions, and an item's bytes.
func (c *nearClient) translate(r *request, message []byte) ([]byte, error) {
	var err error
	if r.release != 0 {
		if r.release, err = c.give(r.release); err != nil {
			return nil, err
		}
	}
	switch {
	case r.op == opMap:
		if err := c.sendFile(r); err != nil {
			return nil, err
		}
		r.op, r.data = opFree, nil // the rest of what it says is for the channel
	case r.op == opFree:
		for ids := r.data; len(ids) >= 8; ids = ids[8:] {
			far, err := c.give(binary.LittleEndian.Uint64(ids))
			if err != nil {
				return nil, err
			}
			binary.LittleEndian.PutUint64(ids, far)
		}
	case r.puts():
		return c.put(r, message)
	}
	return appendFrame(message, r.append(nil)), nil
}

// put appends a request with the bytes of its region, which is the channel's from then on.
func (c *nearClient) put(r *request, message []byte) ([]byte, error) {
	x := c.find(r.region)
	if x == nil || r.size > uint64(x.seg.Size()) {
		return nil, fmt.Errorf("%w: %d bytes of region %d", errFrame, r.size, r.region)
	}
	local := *r
	c.mu.Lock()
	r.region = c.own[local.region]
	c.mu.Unlock()
	message = appendFrame(message, r.append(nil))
	message = appendContent(message, content{r.region, x.seg.Size(), x.seg.Bytes()[:r.size]})
	_, err := c.give(local.region)
	return message, err
}

// find returns a region of the client's, or nil.
func (c *nearClient) find(id uint64) *region {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.own[id] == 0 {
		return nil
	}
	return c.near.regions.find(id)
}

// give ends the client's use of a region, and returns the channel's number of it.
func (c *nearClient) give(id uint64) (far uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if far = c.own[id]; far == 0 {
		return 0, fmt.Errorf("%w: region %d is not the client's", errFrame, id)
	}
	delete(c.own, id)
	c.near.regions.drop(id, 1)
	return far, nil
}

// sendFile answers with the file of a region of the client's.
func (c *nearClient) sendFile(r *request) error {
	x := c.find(r.region)
	if x == nil {
		return fmt.Errorf("%w: region %d is not the client's", errFrame, r.region)
	}
	head := reply{op: opMap, seq: r.seq, spare: x.id, size: uint32(x.seg.Size() >> pageShift), flags: flagFile}
	return sendAll(c.socket, head.append(nil), x.seg.FD())
}

// down brings answers to the client.
func (c *nearClient) down() error {
	for {
		message, err := c.line.Receive()
		if err != nil {
			return err
		}
		frame, regions, err := parseMessage(message)
		if err == nil {
			err = c.copies(frame, regions)
		}
		if err == nil {
			err = sendAll(c.socket, frame)
		}
		if err != nil {
			return err
		}
	}
}

// copies makes regions of what has come with a reply, and puts their numbers in.
func (c *nearClient) copies(frame []byte, regions []content) error {
	var head reply
	if err := head.parse(frame); err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	table := frame[replyHead:]
	switch {
	case head.flags&flagPacked != 0:
		x, rest, err := c.next(head.spare, regions)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(frame[spareAt:], x.id)
		table, regions = x.seg.Bytes(), rest
	case head.spare != 0:
		x, err := c.take(content{head.spare, int(head.size) << pageShift, nil})
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(frame[spareAt:], x.id)
	}
	if head.status != 0 {
		return nil
	}
	if int(head.count) > len(table)/itemHead {
		return fmt.Errorf("%w: %d items in %d bytes", errMessage, head.count, len(table))
	}
	for i := range int(head.count) {
		at := table[i*itemHead+regionAt:]
		id := binary.LittleEndian.Uint64(at)
		if id == 0 {
			continue
		}
		x, rest, err := c.next(id, regions)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(at, x.id)
		regions = rest
	}
	return nil
}

// next makes a region of the first content, which is to be that of a number.
func (c *nearClient) next(id uint64, regions []content) (x *region, rest []content, err error) {
	if len(regions) == 0 || regions[0].id != id {
		return nil, nil, fmt.Errorf("%w: region %d came without its bytes", errMessage, id)
	}
	x, err = c.take(regions[0])
	return x, regions[1:], err
}

// take makes a region of this machine, which is the client's.
func (c *nearClient) take(of content) (*region, error) {
	if of.id == 0 || of.size <= 0 {
		return nil, fmt.Errorf("%w: region %d of %d bytes", errMessage, of.id, of.size)
	}
	x, err := c.near.regions.alloc(of.size)
	if err != nil {
		return nil, err
	}
	copy(x.seg.Bytes(), of.data)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.own[x.id] = of.id
	return x, nil
}
