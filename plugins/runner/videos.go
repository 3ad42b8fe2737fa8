package runner

import (
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/plugins/runner/tensorboard"
)

// videoFolder is the folder in a run's folder with a GIF for each video, named by its env steps; see package runs.
const videoFolder = "videos"

// videos finds the videos of a run as they are made.
type videos struct {
	folder string
	seen   map[string]bool // by name; nil before begin
	looked time.Time       // when the folder had changed at the last look
}

// settled is how long a folder has to be unchanged for its time to tell of every change.
const settled = time.Second

// begin prepares the first look. Videos of an earlier process are in the file that it wrote.
func (v *videos) begin(continued bool) {
	if v.seen != nil {
		return
	}
	v.seen = map[string]bool{}
	if !continued {
		return
	}
	entries, _ := os.ReadDir(v.folder) // mostly there is none
	for _, e := range entries {
		v.seen[e.Name()] = true
	}
}

// fresh returns records for TensorBoard with the videos that have been made since the last look. One that cannot be read is left out.
func (v *videos) fresh(now time.Time) (records []byte) {
	info, err := os.Stat(v.folder)
	if err != nil || info.ModTime().Equal(v.looked) && now.Sub(v.looked) > settled {
		return nil
	}
	entries, err := os.ReadDir(v.folder)
	if err != nil {
		return nil
	}
	v.looked = info.ModTime()
	for _, e := range entries {
		if !v.seen[e.Name()] {
			records = v.add(records, now, e)
		}
	}
	return records
}

// add appends the record of a video, if the file is one.
func (v *videos) add(records []byte, now time.Time, e fs.DirEntry) []byte {
	number, is := strings.CutSuffix(e.Name(), ".gif")
	step, err := strconv.ParseUint(number, 10, 64)
	if !is || err != nil {
		return records
	}
	v.seen[e.Name()] = true
	gif, err := files.Read(filepath.Join(v.folder, e.Name()), tensorboard.MaxImage)
	if err != nil || len(gif) < 10 {
		return records
	}
	return tensorboard.AppendImage(records, now, step, &tensorboard.Image{
		Tag: "evaluation", Width: int(binary.LittleEndian.Uint16(gif[6:])), Height: int(binary.LittleEndian.Uint16(gif[8:])), Encoded: gif,
	})
}
