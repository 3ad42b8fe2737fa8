package spawn

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// fatalWords is what Python prints of a crash in a thread that is not the first.
const fatalWords = `Fatal Python error: Segmentation fault

Current thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/ctypes/__init__.py", line 517 in string_at
  File "/x/.venv/lib/python3.11/site-packages/gymnasium/core.py", line 327 in step
  File "/home/me/bad.py", line 22 in explode
  File "/home/me/bad.py", line 40 in step
  File "/x/.venv/lib/python3.11/site-packages/rlhost/gymnasium/batch.py", line 180 in step

Extension modules: numpy._core._multiarray_umath (total: 14)
`

// says gives lines to the output of a process, and returns its log.
func says(o *output, text string) string {
	var log bytes.Buffer
	o.log = slog.New(slog.NewTextHandler(&log, nil))
	o.read("stderr", strings.NewReader(text))
	return log.String()
}

func TestOutput_TheLastWordsAreTheAuthorsFrame(t *testing.T) {
	for text, want := range map[string]string{
		fatalWords: " (its last words: Segmentation fault in explode, bad.py:22)",
		strings.ReplaceAll(fatalWords, "/home/me", "/x/site-packages/pack"): " (its last words: Segmentation fault in string_at, __init__.py:517)",
		"Fatal Python error: Aborted\n":                                     " (its last words: Aborted)",
		"one\ntwo\n":                                                        " (its last words: one / two)",
	} {
		o := &output{said: &said{}}
		says(o, text)
		if got := quoteWords(o.words()); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestOutput_WarningsOfPythonAreSaidOncePerRuntime(t *testing.T) {
	var of said
	const warning = "/lib/x.py:3: DeprecationWarning: \x1b[33mWARN: it is old\x1b[0m\n  logger.warn(\n"
	first, second := says(&output{said: &of}, warning+"  words\n"), says(&output{said: &of}, warning+warning+"  words\nplain\nplain\n")
	if strings.Count(first, "WARN: it is old") != 1 || strings.Contains(first, "logger.warn(") || strings.Contains(first, "[33m") || !strings.Contains(first, "words") {
		t.Errorf("the first process: %s", first)
	}
	if strings.Contains(second, "it is old") || strings.Contains(second, "logger.warn(") || strings.Count(second, "plain") != 2 {
		t.Errorf("the second process: %s", second)
	}
	const once = `{"@level": "warn", "@message": "outside", "@once": true}` + "\n"
	const often = `{"@level": "warn", "@message": "low"}` + "\n"
	told := says(&output{said: &of}, once+often+often) + says(&output{said: &of}, once+often)
	if strings.Count(told, "outside") != 1 || strings.Count(told, "low") != 3 || strings.Contains(told, "once") {
		t.Errorf("lines of the log: %s", told)
	}
}
