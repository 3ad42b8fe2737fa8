package runner

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/plugins/runner/tensorboard"
)

// writeRows writes rows from one number on: metric b is there from row 2 on, c once.
func writeRows(t *testing.T, l metricsLog, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		row := []metric{{globalStep, float64(i)}, {"a", float64(i) / 4}}
		if i >= 2 {
			row = append(row, metric{"b", -1})
		}
		if i == 3 {
			row = append(row, metric{`c "quoted", with comma`, 1e-9})
		}
		if err := l.write(time.Unix(int64(i), 0), uint64(i), row); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMetricsLog_ContinuesAfterADeathAndGoesBackToAMark checks what a resume needs of every log of metrics: a run that died
// in the middle of a row, goes back to a mark and writes its rows again has the same file as a run that never died.
func TestMetricsLog_ContinuesAfterADeathAndGoesBackToAMark(t *testing.T) {
	t.Parallel()
	for name, open := range metricsLogs {
		whole, dir := t.TempDir(), t.TempDir()
		l := open(whole)
		writeRows(t, l, 0, 6)
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		l = open(dir)
		writeRows(t, l, 0, 2)
		mark := l.mark()
		writeRows(t, l, 2, 5)
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		file := onlyFile(t, dir)
		if err := os.WriteFile(file, append(contentOf(t, file), 1, 2, 3), 0o644); err != nil { // a row that was begun
			t.Fatal(err)
		}
		l = open(dir)
		if err := l.rewind(mark); err != nil {
			t.Fatal(err)
		}
		writeRows(t, l, 2, 6)
		if l.mark() <= mark {
			t.Errorf("%s: mark %d after more rows, %d before", name, l.mark(), mark)
		}
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
		got, want := string(contentOf(t, file)), string(contentOf(t, onlyFile(t, whole)))
		if name == logTensorBoard { // the header has the time
			got, want = got[len(got)-100:], want[len(want)-100:]
		}
		if got != want {
			t.Errorf("%s: the file is\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestMetricsLog_IsWholeOnAFullDisk: a row that does not fit leaves the file unchanged, and rows continue when there is room again.
func TestMetricsLog_IsWholeOnAFullDisk(t *testing.T) {
	for name, open := range metricsLogs {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
			t.Skipf("mounting a small disk: %v", err)
		}
		l := open(dir)
		writeRows(t, l, 0, 4)
		filler := filepath.Join(dir, "filler")
		f, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = f.Write(make([]byte, 4<<10))
		}
		failed := 0
		for i := range 300 {
			err := l.write(time.Unix(1, 0), uint64(i), []metric{{globalStep, 4}, {"d", float64(i)}})
			if err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			} else if err != nil {
				failed++
			}
		}
		if err := errors.Join(f.Close(), os.Remove(filler)); err != nil {
			t.Fatal(err)
		}
		before := l.mark()
		writeRows(t, l, 4, 5)
		if failed == 0 || l.mark() <= before {
			t.Errorf("%s: %d rows failed, mark %d after another row, %d before", name, failed, l.mark(), before)
		}
		if err := errors.Join(l.close(), syscall.Unmount(dir, 0)); err != nil {
			t.Error(err)
		}
	}
}

func TestCSV_HasAColumnForEveryMetric(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := metricsLogs[logCSV](dir)
	writeRows(t, l, 0, 5)
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	want := "global_step,a,b,\"c \"\"quoted\"\", with comma\"\n0,0,,\n1,0.25,,\n2,0.5,-1,\n3,0.75,-1,1e-09\n4,1,-1,\n"
	if got := string(contentOf(t, filepath.Join(dir, CSVFile))); got != want {
		t.Errorf("file is\n%s\nwant\n%s", got, want)
	}
}

func someKeys() map[string]string {
	return map[string]string{"run.seed": "7", "run.name": `"x"`, "component.learner.epochs": "4", "component.learner.nesterov": "true", "component.runner.every": `"1s"`,
		"env.pole.use": `"cartpole@1"`, "wire a → b.depth": "4"}
}

// A file begins with the run's hyper-parameters, also where another process continues it.
func TestEvents_BeginWithTheHyperParameters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 {
		l := metricsLogs[logTensorBoard](dir)
		l.(*events).keys = someKeys
		writeRows(t, l, 0, 2)
		if err := l.close(); err != nil {
			t.Fatal(err)
		}
	}
	content := contentOf(t, filepath.Join(dir, EventsFile))
	begins := tensorboard.AppendHParams(tensorboard.Header(time.Unix(0, 0)), time.Unix(0, 0), tensorboard.HParams{
		Values:  map[string]any{"run.seed": 7.0, "component.learner.epochs": 4.0, "component.learner.nesterov": true, "env.pole.use": "cartpole@1"},
		Metrics: []string{"charts/episodic_return"}})
	if !bytes.HasPrefix(content, begins) {
		t.Errorf("the file begins with\n%x\nwant\n%x", content[:min(len(content), len(begins))], begins)
	}
	if n := bytes.Count(content, []byte("_hparams_/session_start_info")); n != 1 {
		t.Errorf("the hyper-parameters are in the file %d times", n)
	}
}

// TestPeers_TensorBoardReadsTheLog reads the file of a killed run with the package tensorboard. RLHOST_PEERS names a Python that has it.
func TestPeers_TensorBoardReadsTheLog(t *testing.T) {
	t.Parallel()
	python := os.Getenv("RLHOST_PEERS")
	if python == "" {
		t.Skip("RLHOST_PEERS is not set: make test-peers")
	}
	dir := t.TempDir()
	l := metricsLogs[logTensorBoard](dir)
	l.(*events).keys = someKeys
	writeRows(t, l, 0, 4)
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	file := onlyFile(t, dir)
	content := contentOf(t, file)
	if err := os.WriteFile(file, content[:len(content)-5], 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, "-c", `
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
a = EventAccumulator(sys.argv[1])
a.Reload()
for tag in sorted(a.Tags()["scalars"]):
    print(tag, [(s.step, s.value, s.wall_time) for s in a.Scalars(tag)])
from tensorboard.plugins.hparams import metadata
start = metadata.parse_session_start_info_plugin_data(a.SummaryMetadata(metadata.SESSION_START_INFO_TAG).plugin_data.content)
print({k: getattr(v, v.WhichOneof("kind")) for k, v in sorted(start.hparams.items())})
experiment = metadata.parse_experiment_plugin_data(a.SummaryMetadata(metadata.EXPERIMENT_TAG).plugin_data.content)
print([(i.name, i.type) for i in experiment.hparam_infos], [m.name.tag for m in experiment.metric_infos])
`, dir).CombinedOutput()
	want := "a [(0, 0.0, 0.0), (1, 0.25, 1.0), (2, 0.5, 2.0)]\nb [(2, -1.0, 2.0)]\n" +
		"{'component.learner.epochs': 4.0, 'component.learner.nesterov': True, 'env.pole.use': 'cartpole@1', 'run.seed': 7.0}\n" +
		"[('component.learner.epochs', 3), ('component.learner.nesterov', 2), ('env.pole.use', 1), ('run.seed', 3)] ['charts/episodic_return']\n"
	if err != nil || string(out) != want {
		t.Errorf("%v:\n%s\nwant:\n%s", err, out, want)
	}
}

func onlyFile(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range list {
		if !strings.HasSuffix(name, ".abandoned") {
			return name
		}
	}
	t.Fatalf("no file in %s", dir)
	return ""
}

func contentOf(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sized is a log of metrics of a size.
type sized struct {
	metricsLog
	bytes int64
}

func (s *sized) mark() int64 { return s.bytes }

// TestMetricsLog_GrowsSlowlyOnceItIsLong: a row for each dataset at first, then one a second.
func TestMetricsLog_GrowsSlowlyOnceItIsLong(t *testing.T) {
	file := &sized{}
	l := &logs{metrics: map[string]metricsLog{"short": &sized{}, "long": file}}
	now := time.Unix(1000, 0)
	rows := func() (n int) {
		for range 3000 { // 3 s
			now = now.Add(time.Millisecond)
			if !l.thins(now) {
				n++
			}
		}
		return n
	}
	if n := rows(); n != 3000 {
		t.Errorf("%d rows of 3000 datasets", n)
	}
	if file.bytes = metrics.FullLog + 1; rows() != 3 {
		t.Error("a long log does not have a row a second")
	}
}

// A file of episodes that has become large takes every second, fourth, eighth: the files of fast runs stay finite.
func TestEpisodesAreThinned(t *testing.T) {
	l := logs{}
	l.openEpisodes(filepath.Join(t.TempDir(), EpisodesFile))
	lines := func() int {
		l.csv = l.csv[:0]
		for range 64 {
			l.episode(1, played{})
		}
		return bytes.Count(l.csv, []byte("\n"))
	}
	if n := lines(); n != 64 {
		t.Errorf("%d of 64 episodes are written to a small file", n)
	}
	if l.episodes.size = 2 * metrics.FullEpisodes; lines() != 8 {
		t.Errorf("%d of 64 episodes are written to a large file, want 8", bytes.Count(l.csv, []byte("\n")))
	}
}
