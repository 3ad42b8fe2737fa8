package video

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	stdgif "image/gif"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const width, height, fps = 61, 33, 30

// drawn are pictures in which a square moves over a ground of few colours.
func drawn(n int) (pictures [][]byte) {
	for k := range n {
		rgb := bytes.Repeat([]byte{200, 220, 250}, width*height)
		for y := 5; y < 15; y++ {
			for x := 3 + k; x < 13+k; x++ {
				copy(rgb[(y*width+x)*3:], []byte{250, 10, byte(10 * k)})
			}
		}
		pictures = append(pictures, rgb)
	}
	return append(pictures, pictures[n-1]) // one that does not differ
}

// write makes a film of pictures.
func write(t *testing.T, name string, pictures [][]byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	film, err := Create(path, Options{Width: width, Height: height, FPS: fps})
	if err != nil {
		t.Fatal(err)
	}
	defer film.Abort()
	if err := film.Copy(bytes.NewReader(bytes.Join(pictures, nil))); err != nil {
		t.Fatal(err)
	}
	if err := film.Close(); err != nil {
		t.Fatal(err)
	}
	if film.Count() != len(pictures) {
		t.Errorf("count %d, want %d", film.Count(), len(pictures))
	}
	alone(t, path)
	return path
}

// alone fails if anything but a file is in its folder.
func alone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			t.Errorf("%s is left", e.Name())
		}
	}
}

// shown are the pictures of a GIF as a viewer shows them, and how long each stays.
func shown(t *testing.T, path string) (pictures [][]byte, delays []int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all, err := stdgif.DecodeAll(file)
	if err != nil {
		t.Fatal(err)
	}
	canvas := image.NewRGBA(image.Rect(0, 0, all.Config.Width, all.Config.Height))
	for _, part := range all.Image {
		for y := part.Rect.Min.Y; y < part.Rect.Max.Y; y++ {
			for x := part.Rect.Min.X; x < part.Rect.Max.X; x++ {
				canvas.Set(x, y, part.At(x, y))
			}
		}
		pictures = append(pictures, pixels(canvas))
	}
	return pictures, all.Delay
}

func pixels(of image.Image) (rgb []byte) {
	for y := range of.Bounds().Dy() {
		for x := range of.Bounds().Dx() {
			c := color.NRGBAModel.Convert(of.At(x, y)).(color.NRGBA)
			rgb = append(rgb, c.R, c.G, c.B)
		}
	}
	return rgb
}

func TestGIF_FewColoursAreExact(t *testing.T) {
	want := drawn(20)
	got, delays := shown(t, write(t, "a.gif", want))
	if len(got) != len(want) {
		t.Fatalf("%d pictures, want %d", len(got), len(want))
	}
	total := 0
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("picture %d differs", i)
		}
		total += delays[i]
	}
	if total != 100*len(want)/fps {
		t.Errorf("it lasts %d hundredths of a second, want %d", total, 100*len(want)/fps)
	}
}

func TestGIF_ManyColoursAreNear(t *testing.T) {
	const seed = 3
	random := rand.New(rand.NewPCG(seed, seed))
	rgb := make([]byte, width*height*3)
	for i := range width * height { // a slope of colours with noise, as of a shaded picture
		rgb[3*i], rgb[3*i+1], rgb[3*i+2] = byte(i*255/(width*height)), byte(100+random.IntN(20)), byte(40+i%width)
	}
	got, _ := shown(t, write(t, "a.gif", [][]byte{rgb}))
	far := 0
	for i := range rgb {
		far = max(far, max(int(rgb[i])-int(got[0][i]), int(got[0][i])-int(rgb[i])))
	}
	if far > 24 {
		t.Errorf("seed %d: a channel differs by %d", seed, far)
	}
}

func TestPNG_IsExact(t *testing.T) {
	want := drawn(12)
	data, err := os.ReadFile(write(t, "a.PNG", want))
	if err != nil {
		t.Fatal(err)
	}
	first, err := png.Decode(bytes.NewReader(data)) // checks the sums of all chunks
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pixels(first), want[0]) {
		t.Error("the first picture differs")
	}
	for i, still := range stills(t, data) {
		if got, err := png.Decode(bytes.NewReader(still)); err != nil || !bytes.Equal(pixels(got), want[i]) {
			t.Errorf("picture %d: %v", i, err)
		}
	}
}

// stills takes an animated PNG apart into one PNG for each picture, as its format says it is made.
func stills(t *testing.T, data []byte) (files [][]byte) {
	t.Helper()
	head, end := data[:33], data[len(data)-12:]
	number, announced := uint32(0), uint32(0)
	still := func(packed []byte) {
		var one bytes.Buffer
		p := &apng{}
		p.w = bufio.NewWriter(&one)
		if err := errors.Join(p.chunk("IDAT", packed), p.w.Flush()); err != nil {
			t.Fatal(err)
		}
		files = append(files, bytes.Join([][]byte{head, one.Bytes(), end}, nil))
	}
	count := func(of []byte) {
		if got := binary.BigEndian.Uint32(of); got != number {
			t.Errorf("chunk %d has the number %d", number, got)
		}
		number++
	}
	for at := 33; at < len(data); {
		n := int(binary.BigEndian.Uint32(data[at:]))
		body := data[at+8:][:n]
		switch string(data[at+4:][:4]) {
		case "acTL":
			announced = binary.BigEndian.Uint32(body)
		case "fcTL":
			count(body)
		case "IDAT":
			still(body)
		case "fdAT":
			count(body)
			still(body[4:])
		}
		at += n + 12
	}
	if int(announced) != len(files) {
		t.Errorf("%d pictures are announced, there are %d", announced, len(files))
	}
	return files
}

func TestCreate_NamesWhatWorks(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	for name, want := range map[string]string{
		"a.bmp": `no encoder for ".bmp": .gif and .png are written always, and .mp4`,
		"a":     `no encoder for "": .gif and .png`,
		"a.mp4": "no encoder for .mp4, which takes ffmpeg",
	} {
		if _, err := Create(filepath.Join(dir, name), Options{Width: 2, Height: 2, FPS: 1}); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for _, o := range []Options{{0, 2, 1, ""}, {2, 1 << 20, 1, ""}, {2, 2, 0, ""}, {2, 2, 1e-9, ""}} {
		if _, err := Create(filepath.Join(dir, "a.gif"), o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	alone(t, filepath.Join(dir, "none"))
}

func TestFilm_LeavesNothingWhereItFails(t *testing.T) {
	for _, name := range []string{"a.gif", "a.png"} {
		path := filepath.Join(t.TempDir(), name)
		film, err := Create(path, Options{Width: 2, Height: 2, FPS: 10})
		if err != nil {
			t.Fatal(err)
		}
		if err := film.Add(make([]byte, 11)); err == nil || !strings.Contains(err.Error(), "picture 0 has 11 bytes, want 12 for 2 × 2 pixels") {
			t.Error(err)
		}
		if err := film.Copy(bytes.NewReader(make([]byte, 13))); !errors.Is(err, io.ErrUnexpectedEOF) || film.Count() != 1 {
			t.Errorf("%v after %d", err, film.Count())
		}
		film.Abort()
		alone(t, filepath.Join(filepath.Dir(path), "none"))
		if film, err = Create(path, Options{Width: 2, Height: 2, FPS: 10}); err != nil {
			t.Fatal(err)
		}
		if err := film.Close(); err == nil {
			t.Error("a film without pictures is closed")
		}
		alone(t, filepath.Join(filepath.Dir(path), "none"))
	}
}

// full is a disk without room for more.
type full struct{ left int }

func (f *full) Write(data []byte) (int, error) {
	if f.left -= len(data); f.left < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(data), nil
}

func (f *full) Seek(int64, int) (int64, error) { return 0, nil }

func TestEncoders_TellOfAFullDisk(t *testing.T) {
	o := Options{Width: width, Height: height, FPS: fps}
	for name, begin := range map[string]func(*full) (encoder, error){
		"gif": func(f *full) (encoder, error) { return newGIF(bufio.NewWriter(f), o) },
		"png": func(f *full) (encoder, error) { return newPNG(f, o) },
	} {
		for _, left := range []int{0, 100, 2000} {
			e, err := begin(&full{left: left})
			for _, picture := range drawn(40) {
				if err == nil {
					err = e.add(picture)
				}
			}
			if err == nil {
				err = e.end()
			}
			if err == nil || !strings.Contains(err.Error(), "no space left") {
				t.Errorf("%s, %d bytes: %v", name, left, err)
			}
		}
	}
}

// program writes a program that stands for ffmpeg.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ffmpeg")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFFmpeg_ItsWordsAreTheError(t *testing.T) {
	for name, text := range map[string]string{"at once": "echo no codec >&2; exit 3", "at the end": "cat >/dev/null; echo no codec >&2; exit 3"} {
		path := filepath.Join(t.TempDir(), "a.mp4")
		film, err := Create(path, Options{Width: width, Height: height, FPS: fps, FFmpeg: program(t, text)})
		for i := 0; err == nil && i < 200; i++ {
			err = film.Add(drawn(1)[0])
		}
		if err == nil {
			err = film.Close()
		}
		film.Abort()
		if err == nil || !strings.Contains(err.Error(), "ffmpeg: exit status 3: no codec") {
			t.Errorf("%s: %v", name, err)
		}
		alone(t, filepath.Join(filepath.Dir(path), "none"))
	}
}

func TestFFmpeg_GetsEveryPicture(t *testing.T) {
	dir := t.TempDir()
	pictures := drawn(9)
	stand := program(t, `for last; do :; done; echo "$@" >`+dir+`/words; cat >"$last"`)
	path := filepath.Join(t.TempDir(), "a.mp4")
	film, err := Create(path, Options{Width: width, Height: height, FPS: fps, FFmpeg: stand})
	if err != nil {
		t.Fatal(err)
	}
	defer film.Abort()
	for _, p := range pictures {
		if err := film.Add(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := film.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, bytes.Join(pictures, nil)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	words, err := os.ReadFile(dir + "/words")
	if err != nil || !strings.Contains(string(words), "-s 61x33 -r 30 ") {
		t.Errorf("%s %v", words, err)
	}
}
