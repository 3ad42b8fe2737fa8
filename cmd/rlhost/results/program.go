package results

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/session"
)

// Program is the commands' view of the program that they are part of.
type Program struct {
	Out io.Writer
	// Notice prints a note that is no result.
	Notice func(format string, args ...any)
	// Printable removes control characters from names and reasons that come from files and guests.
	Printable func(string) string
	// WithParts calls fn with the table of parts that pipelines may name. Problems of a pipeline in the error of fn are printed.
	WithParts func(fn func(parts *graph.Parts) error) error
	Log       *slog.Logger
}

// usage is the error of a command line that makes no sense.
func usage(err error) error { return &session.Error{Kind: session.Usage, Err: err} }

// codeUnwritable is the code of an output file that cannot be written.
const codeUnwritable = "E089"

// write writes the file of -o.
func write(path string, data []byte) error {
	err := os.WriteFile(path, data, 0o644)
	if err == nil {
		return nil
	}
	reason, help := err, "name another file with -o"
	if in := filepath.Dir(path); errors.Is(err, fs.ErrNotExist) {
		reason, help = fmt.Errorf("there is no folder %s", in), fmt.Sprintf("mkdir -p %s, or name another file with -o", in)
	}
	return usage(fmt.Errorf("-o %s: error[%s]: %w\n  help: %s", path, codeUnwritable, reason, help))
}

// encode prints one line of JSON.
func (p *Program) encode(v any) error { return json.NewEncoder(p.Out).Encode(v) }

// printf prints a text for people.
func (p *Program) printf(format string, args ...any) {
	fmt.Fprint(p.Out, text.Printable(fmt.Sprintf(format, args...)))
}

// rows prints rows under a head in a form.
func (p *Program) rows(rows [][]string, form string) error {
	switch form {
	case "csv":
		return csv.NewWriter(p.Out).WriteAll(shown(rows))
	case "json":
		for _, row := range rows[1:] {
			o := map[string]string{}
			for i, cell := range row {
				o[rows[0][i]] = cell
			}
			if err := p.encode(o); err != nil {
				return err
			}
		}
		return nil
	}
	return p.Table(rows)
}

// Table prints rows in columns; empty cells are dashes.
func (p *Program) Table(rows [][]string) error {
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, row := range shown(rows) {
		for i, cell := range row {
			row[i] = cmp.Or(cell, "-")
		}
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// shown returns rows whose cells have no control character of a terminal, and none that begins another cell or line.
func shown(rows [][]string) [][]string {
	clean := make([][]string, len(rows))
	for i, row := range rows {
		clean[i] = make([]string, len(row))
		for k, cell := range row {
			clean[i][k] = strings.NewReplacer("\n", " ", "\t", " ").Replace(text.Printable(cell))
		}
	}
	return clean
}
