package web

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/rlhost/rlhost/pipeline/loopback"
)

// Times of answers.
const (
	frameTime = 10 * time.Second // that a page may take for a frame
	quiet     = 15 * time.Second // after which a stream without frames says that it lives
	lingers   = 10 * time.Second // that a show continues for a page which asks for single frames
)

// maxPress bounds the form of a key.
const maxPress = 1 << 10

// Frames sends frames as server-sent events until the page leaves or cannot take one.
func (s *Screen) Frames(w http.ResponseWriter, r *http.Request) error {
	v := s.look()
	defer s.leave(v)
	w.Header().Set("Content-Type", "text/event-stream")
	out, beat := http.NewResponseController(w), time.NewTicker(quiet)
	defer beat.Stop()
	for {
		event, err := []byte(": nothing new\n\n"), error(nil)
		select {
		case <-r.Context().Done():
			return nil
		case f := <-v.frames:
			event, err = f.event()
		case <-beat.C:
		}
		if err == nil {
			err = loopback.Extend(w, frameTime)
		}
		if err == nil {
			_, err = w.Write(event)
		}
		if err == nil {
			err = out.Flush()
		}
		if err != nil {
			return err
		}
	}
}

// Still is one frame, for a page without scripts.
type Still struct{ Picture, Text, Said, Problem string } // Picture is the address of an image

// Still returns the frame that is shown now; it waits for the first one. The show continues for a while, for the next call.
func (s *Screen) Still(ctx context.Context) Still {
	v := s.look()
	time.AfterFunc(lingers, func() { s.leave(v) })
	select {
	case <-ctx.Done():
		return Still{Problem: "it takes long"}
	case f := <-v.frames:
		still := Still{Text: f.Text, Said: f.Said, Problem: f.Problem}
		if f.Picture != nil {
			still.Picture = "data:image/png;base64," + base64.StdEncoding.EncodeToString(f.Picture)
		}
		return still
	}
}

// Key takes a key of a form: its name, and whether it was released.
func (s *Screen) Key(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxPress)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the key cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !s.pressed(press{key: r.PostForm.Get("key"), released: r.PostForm.Get("released") != ""}) {
		http.Error(w, "the game has not taken the last keys yet", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
