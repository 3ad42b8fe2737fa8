package runner

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rlhost/rlhost/core/files"
)

// table is a CSV file of metrics: a line of names, then one line a row. A metric that comes up later becomes the last
// column, for which the file is written again; cells of metrics that a row does not have are empty.
type table struct {
	file    logFile
	columns []string
	index   map[string]int
	rows    int64
	cells   []string
}

func newCSV(path string) *table { return &table{file: logFile{path: path, whole: wholeLines}} }

func (t *table) write(_ time.Time, _ uint64, row []metric) error {
	if err := t.open(row); err != nil {
		return err
	}
	t.cells = append(t.cells[:0], make([]string, len(t.columns))...)
	for _, m := range row {
		if m.value == m.value {
			t.cells[t.index[m.name]] = strconv.FormatFloat(m.value, 'g', -1, 64)
		}
	}
	if err := t.file.append(encodeCSV(t.cells)); err != nil {
		return err
	}
	t.rows++
	return nil
}

// open reads which columns the file has, and adds a row's further ones.
func (t *table) open(row []metric) error {
	if t.index == nil {
		if err := t.load(); err != nil {
			return err
		}
	}
	columns := slices.Clone(t.columns)
	for _, m := range row {
		if _, ok := t.index[m.name]; !ok {
			columns = append(columns, m.name)
		}
	}
	if len(columns) == len(t.columns) {
		return nil
	}
	return t.rewrite(columns, t.rows)
}

// load reads the columns of a file that is there, and counts its rows.
func (t *table) load() error {
	content, err := t.lines()
	if err != nil {
		return err
	}
	t.index, t.columns, t.rows = map[string]int{}, nil, max(int64(len(content))-1, 0)
	if len(content) > 0 {
		t.columns = content[0]
	}
	for i, name := range t.columns {
		t.index[name] = i
	}
	return nil
}

// lines returns the file's lines, none if it is not there. A last line that a dead process left unfinished is left out.
func (t *table) lines() ([][]string, error) {
	f, err := files.Open(t.file.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	whole, err := wholeLines(f)
	if err != nil {
		return nil, err
	}
	r := csv.NewReader(bufio.NewReader(io.NewSectionReader(f, 0, whole)))
	r.FieldsPerRecord = -1
	return r.ReadAll()
}

// rewrite replaces the file by one with these columns and its first rows; after an error it is as before. It returns to
// appending with the next write.
func (t *table) rewrite(columns []string, rows int64) error {
	content, err := t.lines()
	if err != nil {
		return err
	}
	out := encodeCSV(columns)
	for _, cells := range content[min(1, len(content)):min(int(rows)+1, len(content))] {
		out = append(out, encodeCSV(append(cells, make([]string, max(len(columns)-len(cells), 0))...))...)
	}
	next := filepath.Join(filepath.Dir(t.file.path), ".tmp-"+filepath.Base(t.file.path))
	if err := os.WriteFile(next, out, 0o644); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := errors.Join(t.file.close(), os.Rename(next, t.file.path)); err != nil {
		return err
	}
	return t.load()
}

func encodeCSV(cells []string) []byte {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(cells) // to memory
	w.Flush()
	return b.Bytes()
}

// mark is the number of rows.
func (t *table) mark() int64 {
	if t.index == nil && t.load() != nil {
		return 0
	}
	return t.rows
}

// rewind leaves out the rows after a mark.
func (t *table) rewind(mark int64) error {
	if err := t.load(); err != nil || mark >= t.rows {
		return err
	}
	return t.rewrite(t.columns, max(mark, 0))
}

func (t *table) close() error { return t.file.close() }
