package runner

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/core/stat"
)

// Columns of the episodes' file. A file that an earlier version began has only the first of them, and keeps to them.
const (
	episodesFirst  = "env_step,env,return,length,terminated"
	episodesHeader = episodesFirst + ",agent,policy,policy_version\n"
)

// episodeBuffer is how many bytes of episodes wait at most for the next flush.
const episodeBuffer = 64 << 10

// logs are the files of a run. Their errors are counted and never returned: training does not end for its log.
type logs struct {
	metrics  map[string]metricsLog // by name
	episodes *logFile              // nil where there are none
	newest   time.Time             // when the newest row of metrics was written
	errors   *stat.Counter
	warn     *slog.Logger
	warned   bool
	csv      []byte // episodes that are not written yet
	short    bool   // their file has no column of who played
	ended    uint64 // episodes of this process
}

// played is an episode that has ended, and who played it.
type played struct {
	trajectory.Episode
	policy  string // empty for a policy that is not declared any more
	version uint64 // the newest that acted in it
}

// fullMetrics is how large a log of metrics may become with a row for each dataset. Fast runs make thousands of rows a second, 100 GB a day;
// beyond the limit they get a row each thinEvery, and 0.2 GB.
const (
	fullMetrics = 64 << 20
	thinEvery   = time.Second
)

// Where nothing is learned, millions of episodes end in a second: 2 MB of them, 170 GB a day. From fullEpisodes on each second one is written,
// and with every further half of that each fourth, eighth and so on: 0.5 GB after that day.
const fullEpisodes = 64 << 20

// everyEpisode returns of how many episodes one is written to a file of so many bytes.
func everyEpisode(size int64) uint64 {
	if size < fullEpisodes {
		return 1
	}
	return 2 << min((size-fullEpisodes)/(fullEpisodes/2), 62)
}

// thins reports whether a row of metrics is left out now, and notes when one is not.
func (l *logs) thins(now time.Time) bool {
	if now.Sub(l.newest) < thinEvery {
		for _, m := range l.metrics {
			if m.mark() > fullMetrics {
				return true
			}
		}
	}
	l.newest = now
	return false
}

// report counts an error and logs the first.
func (l *logs) report(err error) {
	if err == nil {
		return
	}
	l.errors.Inc()
	if !l.warned {
		l.warned = true
		l.warn.Warn("the run's log has gaps, training goes on; later errors are only counted, in runner/log_errors", "error", err)
	}
}

// episode notes an episode; envSteps counts the env steps made so far. It allocates nothing while the buffer lasts.
func (l *logs) episode(envSteps uint64, e played) {
	if l.episodes == nil {
		return
	}
	if l.ended++; l.ended%everyEpisode(l.episodes.size) != 0 {
		return
	}
	if l.csv == nil {
		l.csv = make([]byte, 0, episodeBuffer)
	}
	const longest = 130
	if len(l.csv)+longest+len(e.policy) > episodeBuffer {
		l.flushEpisodes()
	}
	b := strconv.AppendUint(l.csv, envSteps, 10)
	b = strconv.AppendUint(append(b, ','), uint64(e.Env), 10)
	b = strconv.AppendFloat(append(b, ','), float64(e.Return), 'g', -1, 32)
	b = strconv.AppendUint(append(b, ','), uint64(e.Length), 10)
	b = strconv.AppendBool(append(b, ','), e.Terminated)
	if !l.short {
		b = strconv.AppendUint(append(b, ','), uint64(e.Agent), 10)
		b = append(append(b, ','), e.policy...)
		b = strconv.AppendUint(append(b, ','), e.version, 10)
	}
	l.csv = append(b, '\n')
}

// openEpisodes names the episodes' file.
func (l *logs) openEpisodes(path string) {
	l.episodes = &logFile{path: path, header: []byte(episodesHeader), whole: wholeLines}
	first, err := firstLine(path)
	l.short = err == nil && first == episodesFirst // other errors show when the file is written
}

func (l *logs) flushEpisodes() {
	if l.episodes == nil {
		return
	}
	l.report(l.episodes.append(l.csv))
	l.csv = l.csv[:0]
}

// marks returns where the files end with everything flushed, by name; episodes count as the log of that name.
func (l *logs) marks() map[string]int64 {
	l.flushEpisodes()
	marks := map[string]int64{}
	for name, log := range l.metrics {
		marks[name] = log.mark()
	}
	if l.episodes != nil {
		marks[EpisodesFile] = l.episodes.mark()
	}
	return marks
}

// rewind takes the files back to these marks.
func (l *logs) rewind(marks map[string]int64) {
	for name, log := range l.metrics {
		if mark, ok := marks[name]; ok {
			l.report(log.rewind(mark))
		}
	}
	if mark, ok := marks[EpisodesFile]; ok && l.episodes != nil {
		l.report(l.episodes.rewind(mark))
	}
}

func (l *logs) close() error {
	var errs []error
	for _, log := range l.metrics {
		if t, ok := log.(*tracker); ok {
			l.report(t.close()) // of another program
			continue
		}
		errs = append(errs, log.close())
	}
	if l.episodes != nil {
		errs = append(errs, l.episodes.close())
	}
	return errors.Join(errs...)
}
