package dash

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/pipeline/graph"
	"github.com/rlhost/rlhost/pipeline/loopback"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Bounds on what a button may take.
const (
	maxForm    = 64 << 10
	actionTime = 10 * time.Minute
)

// action is what a button does: a request, and the command that makes the same one.
type action struct {
	Verb, Label, Help string
	Command           string // with {name} for the value of a field
	Fields            []input
	Confirm           bool
}

// input is a field of an action.
type input struct {
	Name, Label, Example string
	Choice               []string
	Optional             bool
}

// actions are the buttons of a run.
var actions = []action{
	{Verb: "pause", Label: "Pause", Help: "All components end what they have begun.", Command: "rlhost pause --run {run}"},
	{Verb: "unpause", Label: "Unpause", Help: "End the pause.", Command: "rlhost unpause --run {run}"},
	{Verb: "checkpoint", Label: "Checkpoint", Help: "Save at the next dataset boundary.", Command: "rlhost checkpoint --run {run}"},
	{Verb: "reload", Label: "Set a key", Help: "Reload the run's pipeline file with one more key.", Command: "rlhost reload {file} --set {set} --run {run}",
		Fields: []input{{Name: "set", Label: "key=value", Example: "component.learner.learning_rate=0.0003"}}},
	{Verb: "swap", Label: "Swap", Help: "Another version of an environment or a component.", Command: "rlhost swap {component} {version} --run {run}",
		Fields: []input{{Name: "component", Label: "what", Example: "env.cartpole"}, {Name: "version", Label: "version", Example: "cartpole@1"}}},
	{Verb: "rollback", Label: "Roll back", Help: "The previous version again.", Command: "rlhost rollback {component} --run {run}",
		Fields: []input{{Name: "component", Label: "what", Example: "env.cartpole"}}},
	{Verb: "stop", Label: "Stop", Help: "End the run with a checkpoint.", Command: "rlhost stop --run {run}", Confirm: true},
}

// line is the command line of an action, with the values of its fields.
func (a *action) line(now *look, values func(string) string) string {
	words := strings.Fields(a.Command)
	for i, word := range words {
		switch word {
		case "{run}":
			words[i] = text.Shell(now.Dir)
		case "{file}":
			file, sets := reloaded(now)
			words[i] = text.Shell(file)
			for _, set := range sets {
				words[i] += " --set " + text.Shell(set)
			}
		default:
			if name, ok := strings.CutPrefix(word, "{"); ok {
				words[i] = cmp.Or(values(strings.TrimSuffix(name, "}")), strings.ToUpper(strings.TrimSuffix(name, "}")))
			}
		}
	}
	return strings.Join(words, " ")
}

// reloaded returns the file that a run follows, and the overrides of its keys: its own file where it knows none.
func reloaded(now *look) (file string, sets []string) {
	if file = now.Info.File; filepath.IsAbs(file) {
		return file, now.Info.Sets
	}
	return filepath.Join(now.Dir, runs.PipelineFile), nil
}

// without returns the overrides of all keys but the one that another override is of.
func without(sets []string, set string) (rest []string) {
	key, _, _ := strings.Cut(set, "=")
	for _, s := range sets {
		if k, _, _ := strings.Cut(s, "="); strings.TrimSpace(k) != strings.TrimSpace(key) {
			rest = append(rest, s)
		}
	}
	return rest
}

// do makes the request of a form, and returns what it came to.
func (a *action) do(ctx context.Context, now *look, form func(string) string) (string, error) {
	if !now.Live {
		return "", control.Errorf(control.CodeNoJob, "the run takes no commands: it is %s", now.State)
	}
	for _, f := range a.Fields {
		if strings.TrimSpace(form(f.Name)) == "" && !f.Optional {
			return "", control.Errorf(control.CodeBad, "the field %q is empty", f.Label)
		}
	}
	ctx, done := context.WithTimeout(ctx, actionTime)
	defer done()
	client, err := control.Dial(ctx, now.Info.Socket)
	if err != nil {
		return "", err
	}
	defer client.Close()
	var notices strings.Builder
	said, err := a.ask(ctx, client, now, form, func(notice json.RawMessage) {
		var line string
		if json.Unmarshal(notice, &line) == nil && notices.Len() < maxForm {
			notices.WriteString(line + "\n")
		}
	})
	if err != nil {
		said = "" // a reply that is none
	}
	return notices.String() + said, err
}

func (a *action) ask(ctx context.Context, c *control.Client, now *look, form func(string) string, notice func(json.RawMessage)) (string, error) {
	switch control.Verb(a.Verb) {
	case control.VerbPause, control.VerbUnpause:
		var reply control.GroupReply
		err := c.Do(ctx, control.Verb(a.Verb), control.GroupRequest{}, &reply, notice)
		return text.Group(a.Verb+"d", &reply), err
	case control.VerbCheckpoint:
		var reply control.CheckpointReply
		err := c.Do(ctx, control.VerbCheckpoint, control.CheckpointRequest{}, &reply, notice)
		return "saved " + text.Checkpoint(&reply) + "\n", err
	case control.VerbStop:
		var reply control.StopReply
		err := c.Do(ctx, control.VerbStop, control.StopRequest{}, &reply, notice)
		return "stopped\n", err
	case control.VerbRollback:
		var reply control.SwapReply
		err := c.Do(ctx, control.VerbRollback, control.RollbackRequest{Component: form("component")}, &reply, notice)
		return text.Swap(&reply), err
	case control.VerbSwap:
		var reply control.SwapReply
		err := c.Do(ctx, control.VerbSwap, control.SwapRequest{Component: form("component"), File: form("version")}, &reply, notice)
		return text.Swap(&reply), err
	}
	file, sets := reloaded(now)
	src, err := files.Read(file, graph.MaxBytes)
	if err != nil {
		return "", err
	}
	set := form("set")
	var reply control.ReloadReply
	q := control.ReloadRequest{File: file, Source: string(src), Sets: append(without(sets, set), set)}
	err = c.Do(ctx, control.VerbReload, q, &reply, notice)
	return text.Reload("reloaded "+filepath.Base(file), &reply), err
}

// act answers a form: with the page of the run, or in plain text where a script has sent it.
func (s *Server) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read: "+err.Error(), http.StatusBadRequest)
		return
	}
	one, err := s.find.run(r.PostForm.Get("run"))
	a := actionOf(r.PostForm.Get("verb"))
	if err != nil || one == nil || a == nil {
		http.Error(w, "there is no such run, or no such button", http.StatusNotFound)
		return
	}
	now := one.look(r.Context())
	_ = loopback.Extend(w, actionTime) // else it ends sooner
	said, err := a.do(r.Context(), &now, r.PostForm.Get)
	if err != nil {
		said += complaint(err)
	}
	said = printable(said)
	if r.Header.Get("Accept") == "text/plain" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if err != nil {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = io.WriteString(w, said)
		return
	}
	s.page(w, "said", page{Title: a.Label, Root: "", Run: &now, Key: one.key, Said: said, Line: a.line(&now, func(name string) string { return text.Shell(r.PostForm.Get(name)) })})
}

func actionOf(verb string) *action {
	for i := range actions {
		if actions[i].Verb == verb {
			return &actions[i]
		}
	}
	return nil
}

// complaint writes an error as the command does.
func complaint(err error) string {
	var e *control.Error
	if !errors.As(err, &e) {
		return "error: " + err.Error() + "\n"
	}
	said := e.Problems
	if said != "" {
		said = strings.TrimSuffix(said, "\n") + "\n"
	}
	said += fmt.Sprintf("error[%s]: %s\n", e.Code, e.Reason)
	if e.Help != "" {
		said += "  help: " + e.Help + "\n"
	}
	return said
}
