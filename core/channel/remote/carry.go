package remote

import (
	"fmt"
	"os"
	"sync"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/shm"
)

// Carry joins a line from Near with the channel of that name on this machine, until either ends.
func Carry(name string, line control.Line) {
	path, err := SocketPath(name)
	if err != nil {
		_ = line.Close() // it never fails
		return
	}
	carry(path, line)
}

func carry(path string, line control.Line) {
	defer line.Close() // it never fails
	c := &carrier{line: line, mapped: map[uint64]*shm.Segment{}, asked: map[uint32]chan error{}}
	var err error
	if c.socket, err = shm.Dial(path); err != nil {
		c.refuse(fmt.Errorf("there is no such channel on the machine of the run: %w", err))
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_ = c.down()       // the server logs frames that it does not accept
		_ = c.line.Close() // ends up
	})
	_ = c.up()
	_ = c.socket.Close() // a client that has not said that it ends has died
	both.Wait()
	c.unmap()
}

// carrier joins a line with the socket of a channel.
type carrier struct {
	line   control.Line
	socket *shm.Socket

	backlog [][]byte // frames that have come before the answer that down waits for

	mu     sync.Mutex
	seq    uint32
	asked  map[uint32]chan error // questions of up for regions, by their numbers; of down, nil
	mapped map[uint64]*shm.Segment
	over   bool
}

func (c *carrier) refuse(why error) {
	message, err := c.line.Receive()
	var r request
	if err == nil {
		var frame []byte
		if frame, _, err = parseMessage(message); err == nil {
			err = r.parse(frame)
		}
	}
	if err == nil {
		_ = c.line.Send(appendFrame(nil, refusedHello(r.seq, why))) // a client that is gone
	}
}

// up brings requests to the channel.
func (c *carrier) up() error {
	for {
		message, err := c.line.Receive()
		if err != nil {
			return err
		}
		frame, regions, err := parseMessage(message)
		var r request
		if err == nil {
			err = r.parse(frame)
		}
		switch {
		case err != nil:
		case r.op == opMap:
			err = fmt.Errorf("%w: files do not go to another machine", errMessage)
		case r.puts():
			err = c.fill(&r, regions)
		}
		if err == nil {
			err = sendAll(c.socket, frame)
		}
		if err != nil {
			return err
		}
	}
}

// fill writes what has come with a put into its region, which the server says is the client's.
func (c *carrier) fill(r *request, regions []content) error {
	if len(regions) != 1 || regions[0].id != r.region || uint64(len(regions[0].data)) != r.size {
		return fmt.Errorf("%w: region %d came without its bytes", errMessage, r.region)
	}
	for {
		answer := make(chan error, 1)
		_, err := c.askFor(r.region, answer)
		if err == nil {
			err = <-answer
		}
		if err != nil {
			return err
		}
		if done, err := c.write(r.region, regions[0].data); done || err != nil {
			return err
		}
	}
}

// write writes into a region, unless it has been unmapped since it was asked for.
func (c *carrier) write(id uint64, data []byte) (done bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seg := c.mapped[id]
	switch {
	case c.over:
		return false, os.ErrClosed
	case seg == nil:
		return false, nil
	case len(data) > seg.Size():
		return false, fmt.Errorf("%w: %d bytes for a region of %d", errMessage, len(data), seg.Size())
	}
	copy(seg.Bytes(), data)
	return true, nil
}

// askFor asks the server for a region. Frames of clients never ask for one here, so all such answers are the carrier's.
func (c *carrier) askFor(id uint64, answer chan error) (seq uint32, err error) {
	c.mu.Lock()
	over := c.over
	c.seq++
	seq = c.seq
	c.asked[seq] = answer
	c.mu.Unlock()
	if over {
		return 0, os.ErrClosed
	}
	return seq, sendAll(c.socket, (&request{op: opMap, seq: seq, region: id}).append(nil))
}

// down brings answers to the client.
func (c *carrier) down() (err error) {
	defer c.end()
	buf := make([]byte, maxReply)
	var message []byte
	for {
		frame, err := c.answer(buf)
		if err == nil {
			message, err = c.withContent(appendFrame(message[:0], frame), frame, buf)
		}
		if err == nil {
			err = c.line.Send(message)
		}
		if err != nil {
			return err
		}
	}
}

// end lets nobody wait for an answer any more.
func (c *carrier) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, answer := range c.asked {
		if answer != nil {
			answer <- os.ErrClosed // there is room: each has one answer
		}
	}
}

// answer returns the next frame that is for the client.
func (c *carrier) answer(buf []byte) (frame []byte, err error) {
	if len(c.backlog) > 0 {
		frame, c.backlog = c.backlog[0], c.backlog[1:]
		return frame, nil
	}
	for {
		frame, _, err := c.read(buf)
		if err != nil || frame != nil {
			return append([]byte(nil), frame...), err
		}
	}
}

// read reads one frame. An answer to a question of the carrier's is no frame: it returns its number.
func (c *carrier) read(buf []byte) (frame []byte, settled uint32, err error) {
	frame, file, err := receive(c.socket, buf)
	if err != nil {
		return nil, 0, err
	}
	var head reply
	if err := head.parse(frame); err != nil || head.op != opMap {
		return frame, 0, err
	}
	why := fmt.Errorf("%w: a region that is not the client's", errFrame)
	if file != nil {
		why = c.mapRegion(head.spare, file)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	answer := c.asked[head.seq]
	delete(c.asked, head.seq)
	if answer == nil {
		return nil, head.seq, why
	}
	answer <- why
	return nil, head.seq, nil
}

// mapRegion maps a region that is not mapped. Where many are, they are unmapped first.
func (c *carrier) mapRegion(id uint64, file *os.File) error {
	fd, err := shm.Take(file)
	if err != nil {
		return err
	}
	seg, err := shm.Open(fd, shm.ReadWrite)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mapped[id] != nil {
		return seg.Close()
	}
	if len(c.mapped) >= maxMapped {
		c.unmap()
	}
	c.mapped[id] = seg
	return nil
}

// unmap closes all mappings.
func (c *carrier) unmap() {
	for _, s := range c.mapped {
		_ = s.Close() // unmapping what was mapped does not fail
	}
	clear(c.mapped)
}

// withContent appends what lies in the regions that a reply names.
func (c *carrier) withContent(message, frame, buf []byte) ([]byte, error) {
	var head reply
	if err := head.parse(frame); err != nil {
		return nil, err
	}
	table := frame[replyHead:]
	if head.status == 0 && head.flags&flagPacked != 0 {
		from := len(message)
		var err error
		if message, err = c.appendRegion(message, head.spare, -1, buf); err != nil {
			return nil, err
		}
		table = append([]byte(nil), message[from+regionHead:]...)
	}
	if head.status != 0 || head.count == 0 {
		return message, nil
	}
	items, sizes, err := parseItems(table, int(head.count))
	for i := range items {
		if err == nil && items[i].Region != 0 {
			message, err = c.appendRegion(message, items[i].Region, sizes[i], buf)
		}
	}
	return message, err
}

// appendRegion appends the first bytes of a region of the client's, all with -1.
func (c *carrier) appendRegion(message []byte, id uint64, size int, buf []byte) ([]byte, error) {
	for {
		if message, ok := c.appendMapped(message, id, size); ok {
			return message, nil
		}
		asked, err := c.askFor(id, nil)
		for settled := uint32(0); err == nil && settled != asked; {
			var frame []byte
			if frame, settled, err = c.read(buf); frame != nil {
				c.backlog = append(c.backlog, append([]byte(nil), frame...))
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

func (c *carrier) appendMapped(message []byte, id uint64, size int) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seg := c.mapped[id]
	if seg == nil {
		return message, false
	}
	data := seg.Bytes()
	if size >= 0 {
		data = data[:min(size, len(data))]
	}
	return appendContent(message, content{id, seg.Size(), data}), true
}
