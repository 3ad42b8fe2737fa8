// Package vector steps a batch of environments for another program of the same user: Python's rlhost.make_vec. The program writes
// actions into the environments' own block and reads what they write there; a call is one message in a ring, and its answer another.
package vector

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/core/ring"
	"github.com/rlhost/rlhost/core/shm"
	"github.com/rlhost/rlhost/core/trajectory"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

// Options says which environments to step.
type Options struct {
	Envs      int
	Autoreset hostabi.Autoreset
	// Alone: each environment makes its step as soon as it has an action, and Receive tells which have.
	Alone bool
}

// Files are what the other program has opened: rings of messages, a connection for documents, and a segment with a seed for each
// environment, then a flag for each, which a reset reads. For environments that are stepped alone two lists of numbers of environments
// follow, 4 bytes each, from the next multiple of 4 on: of steps to make, and of steps that are over.
type Files struct {
	Requests, Replies, Wire, Resets int
}

// Ready is the first document: what the environments are, and where the block has what.
type Ready struct {
	Describe []byte         `json:"describe"` // as rl_describe writes it
	Hash     string         `json:"hash"`
	Columns  *native.Schema `json:"columns"`
	Offset   int64          `json:"offset"` // of the block in the file that comes with the document
	Bytes    int            `json:"bytes"`  // of the block
	Row      int            `json:"row"`    // that the environments observe first
}

// Failed is the document that goes before the answer to a call that failed.
type Failed struct {
	Reason string `json:"reason"`
	// Envs need a reset; only where environments are stepped alone.
	Envs []int `json:"envs,omitempty"`
}

// Render is the slot of a call for a picture: T is the number of the environment, Split that of the camera. The document with the picture
// goes before the answer.
const Render = 1

// Picture is a document with a picture: the bytes of all pixels are in the file that comes with it.
type Picture struct {
	Width, Height, Channels int
	FPS                     float32 // pictures a second at normal speed, 0 where the environment does not say
}

// Ask is the slot of a call that puts a question to all environments; see env.Asked. The question is the file of the Question that goes
// before the call, the answer the file of the Answered that goes before the answer.
const Ask = 2

// Question is a document with a question.
type Question struct {
	Bytes int64 `json:"bytes"` // of the file, from its start
}

// Answered is a document with answers: the file has them one after the other.
type Answered struct {
	Bytes []int `json:"bytes"` // of each
}

// creation is the seed of what a module draws before its first reset, which has seeds.
const creation = 1

// server is the state between calls.
type server struct {
	driver   *env.Driver // or nil
	alone    *alone      // or nil
	requests *ring.SPSC
	replies  *ring.SPSC
	wire     *shm.Socket
	resets   *shm.Segment
	seeds    []uint64
}

// Serve makes the environments and steps them until ctx ends or the other program shuts its ring of requests. The error is about
// making them, or about the other program: errors of environments are answers.
func Serve(ctx context.Context, plugin env.Plugin, o Options, f Files) (err error) {
	s := &server{seeds: make([]uint64, o.Envs)}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(f); err != nil {
		return err
	}
	if want := areaBytes(o); s.resets.Size() < want {
		return fmt.Errorf("the segment for resets has %d bytes, want %d for %d environments", s.resets.Size(), want, o.Envs)
	}
	options := env.Options{Name: "make_vec", Envs: o.Envs, Seed: creation, Autoreset: o.Autoreset, Wanted: ctx}
	if o.Alone {
		if s.alone, err = newAlone(s, plugin, options); err != nil {
			return err
		}
	} else if s.driver, err = env.NewDriver(plugin, env.DriverOptions{Options: options}); err != nil {
		return err
	}
	spec := plugin.Spec()
	if err := s.begin(plugin, &spec); err != nil {
		return err
	}
	return s.serve(ctx)
}

// areaBytes is how large the segment for resets has to be.
func areaBytes(o Options) int {
	if !o.Alone {
		return 9 * o.Envs
	}
	return listsAt(o.Envs) + 8*o.Envs
}

// listsAt is where the lists of environments begin.
func listsAt(envs int) int { return (9*envs + 3) &^ 3 }

// open opens what the other program has made.
func (s *server) open(f Files) (err error) {
	if s.requests, err = ring.Open(f.Requests); err != nil {
		return fmt.Errorf("ring of requests: %w", err)
	}
	if s.replies, err = ring.Open(f.Replies); err != nil {
		return fmt.Errorf("ring of replies: %w", err)
	}
	if s.resets, err = shm.Open(f.Resets, shm.ReadWrite); err != nil {
		return fmt.Errorf("segment for resets: %w", err)
	}
	s.wire, err = shm.NewSocket(os.NewFile(uintptr(f.Wire), "wire"))
	return err
}

func (s *server) close() (err error) {
	if s.driver != nil {
		err = s.driver.Close()
	}
	if s.alone != nil {
		err = errors.Join(err, s.alone.envs.Close())
	}
	if s.requests != nil {
		err = errors.Join(err, s.requests.Close())
	}
	if s.replies != nil {
		err = errors.Join(err, s.replies.Close())
	}
	if s.resets != nil {
		err = errors.Join(err, s.resets.Close())
	}
	if s.wire != nil {
		err = errors.Join(err, s.wire.Close())
	}
	return err
}

// begin tells the other program what there is.
func (s *server) begin(plugin env.Plugin, spec *hostabi.EnvSpec) error {
	block, row := s.block()
	return s.tell(&Ready{
		Describe: spec.Describe(), Hash: plugin.Hash(), Columns: block.Schema.Document(), Offset: block.Offset, Bytes: len(block.Mem), Row: row,
	}, block.FD)
}

// block returns the block, and the row that the environments observe first.
func (s *server) block() (env.Block, int) {
	if s.alone != nil {
		return s.alone.envs.Block(), 1
	}
	_, row := s.driver.Acting()
	return s.driver.Block(), row
}

func (s *server) tell(document any, files ...int) error {
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	return s.wire.Send(text, files...)
}

const (
	// glance is how long the server sleeps at most before it looks whether it is still wanted.
	glance = 100 * time.Millisecond
	// alert is how long it looks for the next call before it sleeps: a program that reads all arrays asks again within it, and to be woken
	// takes as long as the step of a small environment.
	alert = 20 * time.Microsecond
)

// serve answers calls.
func (s *server) serve(ctx context.Context) error {
	var in [1]hostabi.Message
	answered := time.Now()
	for ctx.Err() == nil && !s.requests.IsShut() {
		if s.requests.Get(in[:]) == 0 {
			if time.Since(answered) > alert {
				s.requests.Wait(glance)
			}
			continue
		}
		answer := s.answer
		if s.alone != nil {
			answer = s.alone.answer
		}
		if err := answer(&in[0]); err != nil {
			return err
		}
		answered = time.Now()
	}
	return nil
}

// answer makes a call. T of the answer is the row that the environments observe now and take their next actions from, Split the row of
// the step, and Kind is not 0 where the call failed. Inline has which flags the step has set.
func (s *server) answer(m *hostabi.Message) error {
	reply := hostabi.Message{Slot: hostabi.LinkEnvReply}
	ended, err := s.call(m)
	_, stepped := s.driver.Stepped()
	if err != nil {
		reply.Kind = 1
		if err := s.tell(&Failed{Reason: err.Error()}); err != nil {
			return err
		}
	}
	_, row := s.driver.Acting()
	reply.T, reply.Split, reply.Inline[0] = uint32(row), uint32(max(stepped, 0)), uint64(ended)
	return s.reply(reply)
}

func (s *server) reply(reply hostabi.Message) error {
	for s.replies.Put([]hostabi.Message{reply}) == 0 {
		if !s.replies.WaitRoom(glance) {
			return errors.New("the other program takes no answers")
		}
	}
	return nil
}

func (s *server) call(m *hostabi.Message) (trajectory.Ended, error) {
	switch m.Slot {
	case hostabi.LinkEnvStep:
		return s.driver.Step()
	case hostabi.LinkEnvReset:
		mask, seeds := s.resetOf(m.Kind)
		return 0, s.driver.Reset(mask, seeds)
	case Render:
		return 0, s.render(s.driver.Env, int(m.T), int(m.Split))
	case Ask:
		return 0, s.ask(s.driver.Env)
	}
	return 0, fmt.Errorf("there is no call %#x", m.Slot)
}

// render sends a picture of an environment.
func (s *server) render(e env.Env, index, camera int) error {
	spec := e.Spec()
	mode, channels := hostabi.RenderRGB, 3
	if spec.Render.Modes&mode == 0 {
		mode, channels = hostabi.RenderRGBA, 4
	}
	from, ok := e.(env.Renderer)
	if !ok || spec.Render.Modes&mode == 0 {
		return fmt.Errorf("%s draws no pictures in colour: its module would export %s and name the modes RGB or RGBA", spec.Name, hostabi.ExportRender)
	}
	pixels, err := from.Render(index, mode, camera, nil)
	if err != nil {
		return err
	}
	file, err := shm.Create("picture", len(pixels))
	if err != nil {
		return err
	}
	copy(file.Bytes(), pixels)
	told := s.tell(&Picture{Width: spec.Render.Width, Height: spec.Render.Height, Channels: channels, FPS: spec.Render.FPS}, file.FD())
	return errors.Join(told, file.Close())
}

const (
	maxQuestion   = 1 << 30          // bytes
	questionLimit = 10 * time.Second // for a question that was sent before its call
)

// ask puts a question to the environments and sends their answers.
func (s *server) ask(e env.Env) error {
	question, err := s.question()
	if err != nil {
		return err
	}
	to, ok := e.(env.Asked)
	if !ok {
		return fmt.Errorf("%w: the environments of %s have no attributes or methods that another program can reach", env.ErrUnsupported, e.Spec().Name)
	}
	answers, err := to.Ask(question)
	if err != nil {
		return err
	}
	whole := bytes.Join(answers, nil)
	file, err := shm.Create("answers", max(len(whole), 1))
	if err != nil {
		return err
	}
	copy(file.Bytes(), whole)
	told := Answered{Bytes: make([]int, len(answers))}
	for i, answer := range answers {
		told.Bytes[i] = len(answer)
	}
	return errors.Join(s.tell(&told, file.FD()), file.Close())
}

// question receives a question.
func (s *server) question() ([]byte, error) {
	var buffer [64]byte
	if err := s.wire.SetReceiveDeadline(time.Now().Add(questionLimit)); err != nil {
		return nil, err
	}
	n, files, err := s.wire.Receive(buffer[:])
	if err != nil {
		return nil, fmt.Errorf("question: %w", err)
	}
	defer func() {
		for _, f := range files {
			_ = f.Close() // only read
		}
	}()
	var q Question
	if err := json.Unmarshal(buffer[:n], &q); err != nil || len(files) != 1 || q.Bytes < 0 || q.Bytes > maxQuestion {
		return nil, fmt.Errorf("question of %d bytes in %d files: want up to %d in one (%w)", q.Bytes, len(files), maxQuestion, err)
	}
	question := make([]byte, q.Bytes)
	if _, err := files[0].ReadAt(question, 0); err != nil {
		return nil, fmt.Errorf("question: %w", err)
	}
	return question, nil
}

// resetOf returns where episodes are to begin, nil is everywhere, and their seeds, nil where none are given.
func (s *server) resetOf(kind uint16) (mask []uint8, seeds []uint64) {
	given := s.resets.Bytes()
	if kind&hostabi.LinkEnvMask != 0 {
		mask = given[8*len(s.seeds):][:len(s.seeds)]
	}
	if kind&hostabi.LinkEnvSeeds != 0 {
		seeds = s.seeds
		for i := range seeds {
			seeds[i] = binary.LittleEndian.Uint64(given[8*i:])
		}
	}
	return mask, seeds
}
