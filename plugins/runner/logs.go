package runner

import (
	"errors"
	"log/slog"
	"strconv"

	"github.com/rlhost/rlhost/core/trajectory"

	"github.com/rlhost/rlhost/core/stat"
)

const episodesHeader = "env_step,env,return,length,terminated\n"

// episodeBuffer is how many bytes of episodes wait at most for the next flush.
const episodeBuffer = 64 << 10

// logs are the files of a run. Their errors are counted and never returned: training does not end for its log.
type logs struct {
	metrics, episodes *logFile // nil where there are none
	errors            *stat.Counter
	warn              *slog.Logger
	warned            bool
	csv               []byte // episodes that are not written yet
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

// episode notes an episode; env steps are those made so far. It allocates nothing while the buffer lasts.
func (l *logs) episode(envSteps uint64, e trajectory.Episode) {
	if l.episodes == nil {
		return
	}
	if l.csv == nil {
		l.csv = make([]byte, 0, episodeBuffer)
	}
	const longest = 100
	if len(l.csv)+longest > episodeBuffer {
		l.flushEpisodes()
	}
	b := strconv.AppendUint(l.csv, envSteps, 10)
	b = strconv.AppendUint(append(b, ','), uint64(e.Env), 10)
	b = strconv.AppendFloat(append(b, ','), float64(e.Return), 'g', -1, 32)
	b = strconv.AppendUint(append(b, ','), uint64(e.Length), 10)
	b = strconv.AppendBool(append(b, ','), e.Terminated)
	l.csv = append(b, '\n')
}

func (l *logs) flushEpisodes() {
	if l.episodes == nil {
		return
	}
	l.report(l.episodes.append(l.csv))
	l.csv = l.csv[:0]
}

// sizes returns how long the files are with everything flushed.
func (l *logs) sizes() (metrics, episodes int64) {
	if l.metrics == nil {
		return 0, 0
	}
	l.flushEpisodes()
	return l.metrics.length(), l.episodes.length()
}

// rewind takes the files back to these sizes.
func (l *logs) rewind(metrics, episodes int64) {
	if l.metrics == nil {
		return
	}
	l.report(l.metrics.rewind(metrics))
	l.report(l.episodes.rewind(episodes))
}

func (l *logs) close() error {
	if l.metrics == nil {
		return nil
	}
	return errors.Join(l.metrics.close(), l.episodes.close())
}
