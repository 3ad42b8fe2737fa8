package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rlhost/rlhost/core/control"
)

// A swap is killed where its notices come, and before each of the operations that change files.
const (
	oldVersion = "c.wasm"
	newVersion = "rust.wasm"
)

// killAt says where a swap is killed, and the expected findings.
type killAt struct {
	notice    string // that begins with this
	operation string // at the gate: the nth that begins with this
	nth       int
	reply     bool // once the swap has been answered
	request   func(q *control.SwapRequest)
	runs      []string // versions, one of which runs afterwards
	says      string   // by the resumed run
}

func longTrial(q *control.SwapRequest)   { q.TrialEnvs, q.TrialSteps = new(64), new(100_000) }
func atEpisode(q *control.SwapRequest)   { q.At = "episode" }
func onProbation(q *control.SwapRequest) { q.Probation = new(60.0) }

const killed = `^the run was killed during a swap of rollout: it goes on with `

var killPoints = map[string]killAt{
	"checking":                       {notice: "checking", request: longTrial, runs: []string{oldVersion}},
	"prepared":                       {notice: "compiled", request: longTrial, runs: []string{oldVersion}},
	"trial":                          {notice: "trial", request: longTrial, runs: []string{oldVersion}},
	"going over":                     {notice: "going over", request: atEpisode, runs: []string{oldVersion, newVersion}, says: killed},
	"on probation":                   {reply: true, request: onProbation, runs: []string{oldVersion}, says: `^rust.wasm \([0-9a-f]+\) was still watched when the run ended`},
	"before the module is stored":    {operation: "rename plugins/", nth: 1, runs: []string{oldVersion}},
	"after the module was stored":    {operation: "fsync 0001/plugins", nth: 1, runs: []string{oldVersion}},
	"before the change has begun":    {operation: "pwrite 0001/events.jsonl", nth: 1, runs: []string{oldVersion}},
	"after the change has begun":     {operation: "fsync 0001/events.jsonl", nth: 1, runs: []string{oldVersion}, says: killed + "the previous version, c.wasm$"},
	"before pipeline.toml":           {operation: "rename 0001/pipeline.toml", nth: 1, runs: []string{oldVersion}, says: killed + "the previous version, c.wasm$"},
	"after pipeline.toml":            {operation: "pwrite 0001/events.jsonl", nth: 2, runs: []string{newVersion}, says: killed + "the new version, rust.wasm$"},
	"after the change was committed": {operation: "fsync 0001/events.jsonl", nth: 2, runs: []string{newVersion}, says: `^rollout runs rust.wasm \([0-9a-f]+\), since the swap at [0-9]+ env steps$`},
}

// Wherever a host is killed in a swap, the run continues with exactly one of the two versions, says which, and leaves nothing.
func TestSwapKill_TheRunContinuesWithOneOfTheTwo(t *testing.T) {
	t.Parallel()
	for name, at := range killPoints {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killSwap(t, at)
		})
	}
}

// Every operation on the disk that a swap makes, one after the other: RLHOST_KILLS=all.
func TestSwapKill_BeforeEveryOperation(t *testing.T) {
	if os.Getenv("RLHOST_KILLS") == "" {
		t.Skip("set RLHOST_KILLS to run it: a minute")
	}
	for n := 1; ; n++ {
		at := killAt{nth: n, runs: []string{oldVersion, newVersion}}
		ended := false
		t.Run(fmt.Sprintf("operation %d", n), func(t *testing.T) { ended = !killSwap(t, at) })
		if ended {
			t.Logf("%d kills", n-1)
			return
		}
	}
}

// killSwap makes a swap, kills the host in it and resumes the run. It reports whether the swap got as far as that.
func killSwap(t *testing.T, at killAt) bool {
	w := newSwapShop(t)
	j := w.gated("cartpole.toml")
	j.do(control.VerbCheckpoint, control.CheckpointRequest{}, nil)
	if !j.swapAndKill(at) {
		j.stop()
		return false
	}
	<-j.ended
	j.nothingLeft()
	w.fails(exitUsage, []string{"status"}, "error[E070]: no job runs")
	again := w.host("--resume", "job")
	s := again.status()
	v := instance(&s, "rollout").Version
	if v == nil || !slices.Contains(at.runs, filepath.Base(v.File)) && !again.sameModule(v.Hash, at.runs) {
		t.Errorf("%+v runs, want one of %v\n%s", v, at.runs, again.output)
	}
	if text := again.written(); v != nil && text != v.Hash && text != filepath.Base(v.File) {
		t.Errorf("%+v runs, pipeline.toml says %s", v, text)
	}
	if at.says != "" && !regexp.MustCompile("(?m)"+at.says).MatchString(again.output.String()) {
		t.Errorf("the run that goes on says\n%s, want %s", again.output, at.says)
	}
	again.nothingUnfinished()
	again.addsUp()
	again.swapsOn()
	again.stop()
	return true
}

// swapAndKill makes a swap and kills the process in it, or reports that the swap was made.
func (j *subject) swapAndKill(at killAt) bool {
	j.t.Helper()
	q := j.w.swapTo(newVersion)
	if at.request != nil {
		at.request(&q)
	}
	if at.notice == "" && !at.reply {
		var count atomic.Int32
		j.gate.on(func(_ int, operation string) {
			onDisk := !strings.Contains(operation, "memfd:")
			if onDisk && strings.HasPrefix(operation, at.operation) && int(count.Add(1)) == at.nth {
				j.t.Logf("killed before: %s", operation)
				j.kill()
			}
		})
	}
	err := j.client.Do(j.t.Context(), control.VerbSwap, q, nil, func(notice json.RawMessage) {
		var text string
		if json.Unmarshal(notice, &text) == nil && at.notice != "" && strings.HasPrefix(text, at.notice) {
			j.kill()
		}
	})
	if err != nil {
		j.refusal(err, control.CodeEnded, "the job ended before it answered")
		return true
	}
	if at.reply {
		j.kill()
	}
	j.gate.on(nil)
	return at.reply
}

// written is the module that pipeline.toml of the run's folder names: a hash, or the name of a file.
func (j *subject) written() string {
	j.t.Helper()
	use := regexp.MustCompile(`(?m)^use = "(.*)"$`).FindStringSubmatch(j.text())
	if use == nil {
		j.t.Fatalf("no environment in %s", j.text())
	}
	return strings.TrimSuffix(filepath.Base(use[1]), ".wasm") + map[bool]string{true: ".wasm"}[len(use[1]) < 64]
}

// sameModule reports whether a hash is that of one of the files.
func (j *subject) sameModule(hash string, files []string) bool {
	return slices.ContainsFunc(files, func(file string) bool { return moduleHash(j.t, j.w.path(file)) == hash })
}

// swapsOn checks that the run can be swapped: to the one version and back.
func (j *subject) swapsOn() {
	j.t.Helper()
	for _, file := range []string{newVersion, oldVersion, newVersion} {
		var r control.SwapReply
		j.do(control.VerbSwap, j.w.swapTo(file), &r)
		if r.Outcome != control.Committed && r.Outcome != control.Unchanged || r.Dropped != 0 {
			j.t.Errorf("swap to %s: %+v", file, r)
		}
		j.runsFile(file)
	}
}
