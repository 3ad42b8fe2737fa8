package runner

import (
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/component"
	"github.com/rlhost/rlhost/plugins/runner/tensorboard"
)

// metricsLog is a file of rows of metrics in one format.
type metricsLog interface {
	// write appends a row at so many env steps. After an error nothing of it is in the file.
	write(now time.Time, step uint64, row []metric) error
	// mark says where the file ends, for rewind to return there.
	mark() int64
	rewind(mark int64) error
	close() error
}

// Names of logs in the component's table. The console is no file.
const (
	logConsole     = "console"
	logJSONL       = "jsonl"
	logCSV         = "csv"
	logTensorBoard = "tensorboard"
	logPrometheus  = "prometheus" // served, no file
)

// metricsLogs makes each log of metrics, in a run's folder.
var metricsLogs = map[string]func(dir string) metricsLog{
	logJSONL: func(dir string) metricsLog {
		return &jsonl{logFile{path: filepath.Join(dir, MetricsFile), whole: wholeLines}}
	},
	logCSV: func(dir string) metricsLog { return newCSV(filepath.Join(dir, CSVFile)) },
	logTensorBoard: func(dir string) metricsLog {
		return &events{logFile: logFile{path: filepath.Join(dir, EventsFile), header: tensorboard.Header(time.Now()), whole: tensorboard.Whole}, videos: videos{folder: filepath.Join(dir, videoFolder)}}
	},
}

// jsonl has a JSON object of numbers a line.
type jsonl struct{ logFile }

func (l *jsonl) write(_ time.Time, _ uint64, row []metric) error {
	return l.append(appendRow([]byte{'{'}, row))
}

// appendRow appends the fields of a JSON object that has begun, and ends it and its line.
func appendRow(b []byte, row []metric) []byte {
	for i, m := range row {
		if i > 0 {
			b = append(b, ',')
		}
		quoted, _ := json.Marshal(m.name) // every string can be
		b = appendJSON(append(append(b, quoted...), ':'), m.value)
	}
	return append(b, '}', '\n')
}

// appendJSON appends a number. JSON has no NaN and no infinity: they become null.
func appendJSON(b []byte, v float64) []byte {
	switch size := math.Abs(v); {
	case !finite(v):
		return append(b, "null"...)
	case size != 0 && (size < 1e-6 || size >= 1e21):
		return strconv.AppendFloat(b, v, 'e', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}

// events is a file for TensorBoard.
type events struct {
	logFile
	keys   func() map[string]string // of the pipeline, as TOML; nil where nobody knows them
	videos videos
}

func (l *events) write(now time.Time, step uint64, row []metric) error {
	if l.keys != nil && l.mark() == 0 {
		l.header = tensorboard.AppendHParams(tensorboard.Header(now), now, tensorboard.HParams{Values: hyperParameters(l.keys()), Metrics: []string{component.GaugeMeanReturn}})
	}
	scalars := make([]tensorboard.Scalar, 0, len(row))
	for _, m := range row {
		if m.name != globalStep && m.name != "time" { // each event has both
			scalars = append(scalars, tensorboard.Scalar{Tag: m.name, Value: m.value})
		}
	}
	l.videos.begin(l.mark() > 0)
	return errors.Join(l.append(tensorboard.AppendEvent(nil, now, step, scalars)), l.append(l.videos.fresh(now)))
}

func (l *events) close() error {
	var err error
	if l.f != nil {
		err = l.append(l.videos.fresh(time.Now()))
	}
	return errors.Join(err, l.logFile.close())
}

// hyperParameters returns the keys of a pipeline that runs are told apart by, with their values as numbers, truths or texts.
func hyperParameters(keys map[string]string) map[string]any {
	values := map[string]any{}
	for key, text := range keys {
		table, _, _ := strings.Cut(key, ".")
		if key != "run.seed" && table != "component" && table != "policy" && table != "env" || strings.HasPrefix(key, "component.runner.") {
			continue
		}
		switch number, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64); {
		case err == nil:
			values[key] = number
		case text == "true" || text == "false":
			values[key] = text == "true"
		default:
			values[key] = strings.Trim(text, `"`)
		}
	}
	return values
}
