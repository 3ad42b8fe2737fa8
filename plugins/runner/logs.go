package runner

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/rlhost/rlhost/core/metrics"
	"github.com/rlhost/rlhost/core/stat"
	"github.com/rlhost/rlhost/core/trajectory"
)

// Columns of the episodes' file. A file that an earlier version began has only the first of them, and keeps to them.
const (
	episodesFirst  = "env_step,env,return,length,terminated"
	episodesPlayed = episodesFirst + ",agent,policy,policy_version"
	episodesHeader = episodesPlayed + ",life,number\n"
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
	lacks    int    // groups of columns that their file does not have: of 2 the names of episodes, of 1 who played
	ended    uint64 // episodes of this process
}

// played is an episode that has ended, and who played it.
type played struct {
	trajectory.Episode
	policy  string // empty for a policy that is not declared any more
	version uint64 // the newest that acted in it
	life    uint32 // of its number; see tape.Life
}

// thins reports whether a row of metrics is left out now, and notes when one is not.
func (l *logs) thins(now time.Time) bool {
	if now.Sub(l.newest) < metrics.ThinPeriod {
		for _, m := range l.metrics {
			if m.mark() > metrics.FullLog {
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
	if l.ended++; l.ended%metrics.EveryEpisode(l.episodes.size) != 0 {
		return
	}
	if l.csv == nil {
		l.csv = make([]byte, 0, episodeBuffer)
	}
	const longest = 150
	if len(l.csv)+longest+len(e.policy) > episodeBuffer {
		l.flushEpisodes()
	}
	b := strconv.AppendUint(l.csv, envSteps, 10)
	b = strconv.AppendUint(append(b, ','), uint64(e.Env), 10)
	b = strconv.AppendFloat(append(b, ','), float64(e.Return), 'g', -1, 32)
	b = strconv.AppendUint(append(b, ','), uint64(e.Length), 10)
	b = strconv.AppendBool(append(b, ','), e.Terminated)
	if l.lacks < 2 {
		b = strconv.AppendUint(append(b, ','), uint64(e.Agent), 10)
		b = append(append(b, ','), e.policy...)
		b = strconv.AppendUint(append(b, ','), e.version, 10)
	}
	if l.lacks == 0 {
		b = strconv.AppendUint(append(b, ','), uint64(e.life), 10)
		b = strconv.AppendUint(append(b, ','), uint64(e.Number), 10)
	}
	l.csv = append(b, '\n')
}

// openEpisodes names the episodes' file.
func (l *logs) openEpisodes(path string) {
	l.episodes = &logFile{path: path, header: []byte(episodesHeader), whole: wholeLines}
	first, err := firstLine(path)
	switch { // errors show when the file is written
	case err == nil && first == episodesFirst:
		l.lacks = 2
	case err == nil && first == episodesPlayed:
		l.lacks = 1
	}
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
