package video

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// ffmpeg is a process that encodes.
type ffmpeg struct {
	process *exec.Cmd
	in      io.WriteCloser
	words   bytes.Buffer
	waited  bool
}

// newFFmpeg starts one that writes into a file. H.264 and VP9 of four bits of colour for each pixel want even sides, so a last row or
// column is added where one is odd.
func newFFmpeg(path string, o Options) (*ffmpeg, error) {
	program, err := find(o.FFmpeg)
	if err != nil {
		return nil, err
	}
	f := &ffmpeg{process: exec.Command(program, "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24",
		"-s", fmt.Sprintf("%dx%d", o.Width, o.Height), "-r", fmt.Sprint(o.FPS), "-i", "-", "-an",
		"-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p", path)}
	f.process.Stderr = &f.words
	if f.in, err = f.process.StdinPipe(); err != nil {
		return nil, err
	}
	return f, f.process.Start()
}

func (f *ffmpeg) add(rgb []byte) error {
	if _, err := f.in.Write(rgb); err != nil {
		return f.failed(err)
	}
	return nil
}

func (f *ffmpeg) end() error {
	if err := f.in.Close(); err != nil {
		return f.failed(err)
	}
	return f.failed(nil)
}

// failed waits for the process to end and returns its own words where it failed.
func (f *ffmpeg) failed(err error) error {
	_ = f.in.Close() // so that it ends
	f.waited = true
	if ended := f.process.Wait(); ended != nil {
		return fmt.Errorf("ffmpeg: %w: %s", ended, strings.TrimSpace(f.words.String()))
	}
	if err != nil {
		return errors.Join(err, errors.New("ffmpeg took no more pictures"))
	}
	return nil
}

func (f *ffmpeg) abort() {
	if f.waited {
		return
	}
	f.waited = true
	_ = f.process.Process.Kill()
	_ = f.process.Wait()
}
