package runner

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// trackerRows is how many rows wait for a tracker at most.
	trackerRows = 4096
	// trackerWait is how long a tracker may take to finish after the run, before it is ended.
	trackerWait = 30 * time.Second
	// trackerWords bounds what is kept of its output.
	trackerWords = 4 << 10
)

// trackers are the names of such logs.
var trackers = []string{"wandb", "mlflow"}

// tracker is a log that a program of Python takes, line by line: Weights & Biases, or MLflow. It never holds up the run: rows that the
// program is too slow for are lost, and counted as errors.
type tracker struct {
	name, python, dir string
	rows              chan []byte
	ended             chan struct{} // closed once the program has ended
	process           *exec.Cmd
	words             tail

	mu  sync.Mutex
	err error // why it ended
}

// begin starts the program.
func (t *tracker) begin() error {
	t.process = exec.Command(t.python, "-m", "rlhost.tracking", t.name, t.dir)
	t.process.Stdout, t.process.Stderr = &t.words, &t.words
	t.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the run, which then ends it
	in, err := t.process.StdinPipe()
	if err == nil {
		err = t.process.Start()
	}
	t.rows, t.ended = make(chan []byte, trackerRows), make(chan struct{})
	if err != nil {
		t.err = fmt.Errorf("log %q: %w", t.name, err)
		close(t.ended)
		return t.err
	}
	go t.feed(in)
	return nil
}

// feed gives the program its rows, and waits for its end once there are no more.
func (t *tracker) feed(in io.WriteCloser) {
	defer close(t.ended)
	var broken error
	for row := range t.rows {
		if _, broken = in.Write(row); broken != nil {
			break
		}
	}
	err := errors.Join(broken, in.Close(), t.process.Wait())
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = fmt.Errorf("log %q: its program has ended (%w): %s", t.name, err, t.words.last())
	}
}

// failed returns why the program has ended, nil while it runs.
func (t *tracker) failed() error {
	select {
	case <-t.ended:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.err
	default:
		return nil
	}
}

func (t *tracker) write(_ time.Time, _ uint64, row []metric) error {
	if t.process == nil {
		if err := t.begin(); err != nil {
			return err
		}
	}
	if err := t.failed(); err != nil {
		return err
	}
	select {
	case t.rows <- appendRow([]byte{'{'}, row):
		return nil
	default:
		return fmt.Errorf("log %q: its program has %d rows to read: this one is lost", t.name, trackerRows)
	}
}

// mark is 0: a tracker's rows are in no file of ours.
func (t *tracker) mark() int64 { return 0 }

// rewind does nothing: a tracker keeps its rows, and their step tells the rows of an abandoned future.
func (t *tracker) rewind(int64) error { return nil }

// close ends the program once it has all rows.
func (t *tracker) close() error {
	if t.process == nil {
		return nil
	}
	close(t.rows)
	select {
	case <-t.ended:
		return t.failed()
	case <-time.After(trackerWait):
	}
	_ = t.process.Process.Signal(os.Kill)
	<-t.ended
	return fmt.Errorf("log %q: its program was ended, %v after the run: %s", t.name, trackerWait, t.words.last())
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

// Write is io.Writer's.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, data...)
	t.data = t.data[max(0, len(t.data)-trackerWords):]
	return len(data), nil
}

// last returns the last line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(string(bytes.TrimSpace(t.data)), "\n")
	return lines[len(lines)-1]
}
