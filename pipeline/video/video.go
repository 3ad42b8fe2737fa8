// Package video writes pictures into a file that shows them one after another: an animated GIF or PNG, or what ffmpeg makes.
//
//	film, err := video.Create("out.gif", video.Options{Width: 600, Height: 400, FPS: 50})
//	defer film.Abort()
//	err = film.Add(pixels) // for each picture
//	err = film.Close()
//
// The file appears whole, under its name, when the film is closed. The package computes no pictures and plays none.
package video

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// ErrFormat is the error of a file whose ending says nothing that can be written.
var ErrFormat = errors.New("no encoder")

// MaxSide bounds the width and height of a picture.
const MaxSide = 16384

// Options says what the pictures are.
type Options struct {
	Width, Height int
	FPS           float64 // pictures a second
	FFmpeg        string  // path of ffmpeg; default the one on PATH
}

// byFFmpeg are the endings that ffmpeg writes.
var byFFmpeg = []string{".mp4", ".mkv", ".mov", ".webm"}

// encoder writes pictures of one size.
type encoder interface {
	// add writes the next picture, which has three bytes a pixel. It keeps nothing of rgb.
	add(rgb []byte) error
	// end writes what comes after the last picture.
	end() error
	// abort gives up what end would release.
	abort()
}

// Film is a file to which pictures are added. It is for one goroutine.
type Film struct {
	path    string
	file    *os.File // nil once it is closed
	encoder encoder
	options Options
	count   int
}

// Create begins a film. The ending of path names its format: .gif, .png, or, where there is ffmpeg, .mp4, .mkv, .mov and .webm. The error
// is ErrFormat where there is no encoder for the ending.
func Create(path string, o Options) (*Film, error) {
	if o.Width < 1 || o.Height < 1 || o.Width > MaxSide || o.Height > MaxSide {
		return nil, fmt.Errorf("pictures of %d × %d: want 1 to %d pixels a side", o.Width, o.Height, MaxSide)
	}
	if !(o.FPS >= 0.01 && o.FPS <= 1000) {
		return nil, fmt.Errorf("%v pictures a second: want 0.01 to 1000", o.FPS)
	}
	if err := Check(path, o.FFmpeg); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".film-*"+filepath.Ext(path))
	if err != nil {
		return nil, err
	}
	f := &Film{path: path, file: file, options: o}
	if f.encoder, err = begin(file, ending(path), o); err != nil {
		f.Abort()
		return nil, err
	}
	return f, nil
}

// Check returns ErrFormat, with what can be written, if there is no encoder for the ending of path. ffmpeg is as in Options.
func Check(path, ffmpeg string) error {
	end := ending(path)
	switch {
	case end == ".gif" || end == ".png":
		return nil
	case !slices.Contains(byFFmpeg, end):
		return fmt.Errorf("%w for %q: .gif and .png are written always, and %s where ffmpeg is", ErrFormat, filepath.Ext(path), strings.Join(byFFmpeg, ", "))
	}
	if _, err := find(ffmpeg); err != nil {
		return fmt.Errorf("%w for %s, which takes ffmpeg (%w): pip install imageio-ffmpeg, apt-get install ffmpeg, or name the file .gif or .png", ErrFormat, end, err)
	}
	return nil
}

func ending(path string) string { return strings.ToLower(filepath.Ext(path)) }

func find(ffmpeg string) (string, error) {
	if ffmpeg == "" {
		ffmpeg = "ffmpeg"
	}
	return exec.LookPath(ffmpeg)
}

func begin(file *os.File, ending string, o Options) (encoder, error) {
	switch ending {
	case ".gif":
		return newGIF(bufio.NewWriterSize(file, 1<<16), o)
	case ".png":
		return newPNG(file, o)
	}
	return newFFmpeg(file.Name(), o)
}

// Add adds a picture: the rows from the top, three bytes a pixel. It keeps nothing of rgb.
func (f *Film) Add(rgb []byte) error {
	if want := f.options.Width * f.options.Height * 3; len(rgb) != want {
		return fmt.Errorf("picture %d has %d bytes, want %d for %d × %d pixels", f.count, len(rgb), want, f.options.Width, f.options.Height)
	}
	f.count++
	return f.encoder.add(rgb)
}

// Count returns how many pictures the film has.
func (f *Film) Count() int { return f.count }

// Close completes the file and gives it its name. A film without pictures is an error.
func (f *Film) Close() error {
	defer f.Abort()
	if f.count == 0 {
		return errors.New("the film has no pictures")
	}
	encoder := f.encoder
	f.encoder = nil
	if err := encoder.end(); err != nil {
		encoder.abort()
		return err
	}
	// CreateTemp makes a file for its owner alone.
	if err := errors.Join(f.file.Chmod(0o644), f.file.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.file.Name(), f.path); err != nil {
		return err
	}
	f.file = nil
	return nil
}

// Abort removes what was written of a film that is not closed.
func (f *Film) Abort() {
	if f.encoder != nil {
		f.encoder.abort()
		f.encoder = nil
	}
	if f.file != nil {
		_ = f.file.Close() // it may be closed, and its bytes are not wanted
		_ = os.Remove(f.file.Name())
		f.file = nil
	}
}

// Copy adds all pictures that r has, one after another without anything between them.
func (f *Film) Copy(r io.Reader) error {
	picture := make([]byte, f.options.Width*f.options.Height*3)
	for {
		_, err := io.ReadFull(r, picture)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("picture %d: %w", f.count, err)
		}
		if err := f.Add(picture); err != nil {
			return err
		}
	}
}

// hundredths returns how many hundredths of a second a picture stays, so that no error adds up.
func (o *Options) hundredths(picture int) int {
	at := func(i int) float64 { return math.Round(100 * float64(i) / o.FPS) }
	return int(at(picture+1) - at(picture))
}
