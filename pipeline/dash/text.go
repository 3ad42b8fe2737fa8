package dash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/files"
)

// printable makes a text of strangers one that steers nothing: html/template escapes it where it is shown.
func printable(s string) string { return text.Printable(strings.ToValidUTF8(s, "?")) }

// cut shortens a text of strangers.
func cut(s string, most int) string {
	if s = printable(s); len([]rune(s)) > most {
		return string([]rune(s)[:most]) + "…"
	}
	return s
}

// figure writes a number for people.
func figure(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	if size := math.Abs(v); size >= 1e5 || size != 0 && size < 1e-3 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}

// amount writes a count of things, or their rate: 12.3k.
func amount(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return text.Short(v)
}

// tailBytes is how much of the end of a file is read for a page.
const tailBytes = 2 << 20

// tail returns the whole lines among the last bytes of a regular file; whole says that this is all of it. A missing file has none.
func tail(path string, most int64) (lines [][]byte, whole bool, err error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, true, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, true, err
	}
	from := max(info.Size()-most, 0)
	data, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return nil, true, err
	}
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte{'\n'})
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	for line := range bytes.Lines(data) {
		lines = append(lines, bytes.TrimSuffix(line, []byte{'\n'}))
	}
	return lines, from == 0, nil
}

// stamp is how a file looked when it was read: what it says has changed if it looks different.
type stamp struct {
	size int64
	at   time.Time
}

// changed reports whether a file looks different, and notes how.
func (s *stamp) changed(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	now := stamp{info.Size(), info.ModTime()}
	if now == *s {
		return false
	}
	*s = now
	return true
}

// record is a line of a log, for people.
type record struct{ Time, Level, Message, Rest string }

// recordOf reads a line of a log.
func recordOf(line []byte) record {
	var fields map[string]json.RawMessage
	if json.Unmarshal(line, &fields) != nil {
		return record{Message: cut(string(line), 500)}
	}
	word := func(key string) string {
		var s string
		_ = json.Unmarshal(fields[key], &s) // what is no text is shown with the rest
		return s
	}
	r := record{Level: cut(word("level"), 10), Message: cut(word("msg"), 1000)}
	if at, err := time.Parse(time.RFC3339Nano, word("time")); err == nil {
		r.Time = at.Local().Format(time.TimeOnly)
	}
	var rest []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if key != "level" && key != "msg" && key != "time" {
			rest = append(rest, fmt.Sprintf("%s=%s", key, fields[key]))
		}
	}
	r.Rest = cut(strings.Join(rest, " "), 1000)
	return r
}

// bytesOf writes a size.
func bytesOf(n uint64) string { return text.Short(float64(n)) + "B" }
