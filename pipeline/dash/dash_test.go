package dash

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rlhost/rlhost/core/control"
	"github.com/rlhost/rlhost/internal/testkit"
	"github.com/rlhost/rlhost/pipeline/loopback"
	"github.com/rlhost/rlhost/pipeline/runs"
)

func has(t *testing.T, what, text string, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", what, want, text)
		}
	}
}

// A page says what status, files and metrics say, its pictures have lines, and what comes later comes as events.
func TestRun_IsShownAndFollowed(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	j.write("metrics.jsonl", metricsText(0, 50))
	j.write("episodes.csv", "env_step,env,return,length,terminated,agent,policy,policy_version\n2048,8,9.5,9,true,0,main,0\n4096,1,311,311,true,0,main,0\n")
	j.write("log.jsonl", `{"time":"2026-11-30T04:57:38Z","level":"WARN","msg":"a line of the log","component":"rollout"}`+"\n")
	root := serve(t, Options{Dir: dir})
	_, index := get(t, root)
	has(t, "the list", index, "pole/0001", "running", "pole@1")
	_, page := get(t, root+"run?run=pole/0001")
	has(t, "the page", page, "running", "learning_rate = 0.001", "rollout", "1.0k env steps/s", "queue 2/4", "pole.wasm 01234567", "311.000", "9.500",
		"a line of the log", "component=&#34;rollout&#34;", "rlhost pause --run "+j.run.Dir, "rlhost swap COMPONENT VERSION --run", "chart=return", "chart=kl")
	if len(page) > 60_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	code, picture := get(t, root+"curve.svg?run=pole/0001&chart=return")
	if has(t, "the picture", picture, "<svg", "training", "env steps"); code != http.StatusOK {
		t.Errorf("a picture is answered with %d", code)
	}
	_, numbers := get(t, root+"points?run=pole/0001&chart=lag&from=10000&to=20000")
	has(t, "its numbers", numbers, `"MinX":10000,"MaxX":20000`, `"label":"mean"`, `"label":"max"`)
	_, other := get(t, root+"points?run=pole/0001&metric=component07/counter_of_something&x=seconds")
	has(t, "another metric", other, `"MaxX":0.5`)
	_, log := get(t, root+"run?run=pole/0001&diff=pole/0001")
	has(t, "a difference from itself", log, "eval_return")

	seen := 0
	watch(t, root+"events?run=pole/0001", "what is new", func(all string) bool {
		switch {
		case seen == 0 && strings.Contains(all, `["records"`):
			seen++
			j.write("metrics.jsonl", metricsText(50, 80))
			j.set(func(s *control.StatusReply) {
				s.State, s.Cause = control.Stalled, "learner waits for rollout.trajectories"
			})
		case seen == 1 && strings.Contains(all, "data: 80\n") && strings.Contains(all, "stands still:\\u003c/strong\\u003e learner waits"):
			seen++
		}
		return seen == 2
	})
	j.end("env_steps")
	watch(t, root+"events?run=pole/0001", "the end", func(all string) bool { return strings.Contains(all, "ended (env_steps)") })
}

// Buttons ask what commands ask, once, and say what the job answers.
func TestButtons_DoWhatTheirCommandsDo(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	file := filepath.Join(dir, "my file.toml")
	if err := os.WriteFile(file, []byte("rlhost = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := j.run.Update(func(i *runs.Info) { i.File, i.Sets = file, []string{"run.seed=3", "component.learner.learning_rate=1"} }); err != nil {
		t.Fatal(err)
	}
	root := serve(t, Options{Dir: dir})
	for _, c := range []struct {
		verb   string
		fields url.Values
		asks   string
		says   string
	}{
		{"pause", nil, `pause {}`, "rollout"},
		{"unpause", nil, `unpause {}`, ""},
		{"checkpoint", nil, `checkpoint {}`, "saved policy version 7"},
		{"swap", url.Values{"component": {"env.pole"}, "version": {"pole@2"}}, `swap {"component":"env.pole","file":"pole@2"}`, "swapped"},
		{"rollback", url.Values{"component": {"env.pole"}}, `rollback {"component":"env.pole"}`, "rolled back"},
		{"reload", url.Values{"set": {"component.learner.learning_rate=0.0003"}},
			`"sets":["run.seed=3","component.learner.learning_rate=0.0003"]`, "component learner: run.seed=3 component.learner.learning_rate=0.0003"},
		{"stop", nil, `stop {}`, "stopped"},
	} {
		form := url.Values{"run": {"pole/0001"}, "verb": {c.verb}}
		for key, value := range c.fields {
			form[key] = value
		}
		before := strings.Count(j.requests(), "\n")
		code, said := post(t, root+"do", form)
		if has(t, c.verb, said, c.says); code != http.StatusOK {
			t.Errorf("%s is answered with %d: %s", c.verb, code, said)
		}
		if has(t, "the request", j.requests(), c.asks); strings.Count(j.requests(), "\n") > before+1 {
			t.Errorf("%s asks more than once:\n%s", c.verb, j.requests())
		}
	}
	form := url.Values{"run": {"pole/0001"}, "verb": {"swap"}, "component": {"env.pole"}}
	if code, said := post(t, root+"do", form); code != http.StatusConflict || !strings.Contains(said, `error[E079]: the field "version" is empty`) {
		t.Errorf("a swap to nothing: %d %s", code, said)
	}
	j.refuses = &control.Error{Code: control.CodeSpaces, Reason: "spaces <differ>", Help: "train again"}
	form.Set("version", "<b>'x' \"y\"")
	if code, said := post(t, root+"do", form); code != http.StatusConflict || said != "error[E074]: spaces <differ>\n  help: train again\n" {
		t.Errorf("a refused swap: %d %q", code, said)
	}
	_, page := post(t, root+"do", form, func(q *http.Request) { q.Header.Set("Accept", "text/html") })
	has(t, "the page of a form", page, "spaces &lt;differ&gt;", "&#39;&lt;b&gt;&#39;\\&#39;&#39;x&#39;\\&#39;&#39;", "back to pole/0001")
	j.end("stop")
	if code, said := post(t, root+"do", url.Values{"run": {"pole/0001"}, "verb": {"pause"}}); code != http.StatusConflict || !strings.Contains(said, "error[E070]") {
		t.Errorf("a pause of a run that has ended: %d %s", code, said)
	}
}

// Who does not know the token, comes from another page, or names another machine gets nothing and changes nothing.
func TestGuard_RefusesStrangers(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	root := serve(t, Options{Dir: dir})
	u, _ := url.Parse(root)
	form := url.Values{"run": {"pole/0001"}, "verb": {"stop"}}
	header := func(pairs ...string) func(*http.Request) {
		return func(q *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				q.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	host := func(name string) func(*http.Request) { return func(q *http.Request) { q.Host = name } }
	wrong := u.Scheme + "://" + u.Host + "/" + strings.Repeat("A", 26) + "/"
	for name, ask := range map[string]func() (int, string){
		"no token":          func() (int, string) { return get(t, u.Scheme+"://"+u.Host+"/") },
		"a wrong token":     func() (int, string) { return get(t, wrong) },
		"a part of it":      func() (int, string) { return get(t, strings.TrimSuffix(root, "/")[:len(root)-4]+"/") },
		"no token, a form":  func() (int, string) { return post(t, u.Scheme+"://"+u.Host+"/do", form) },
		"another origin":    func() (int, string) { return post(t, root+"do", form, header("Origin", "http://evil.example")) },
		"another port":      func() (int, string) { return post(t, root+"do", form, header("Origin", "http://127.0.0.1:1")) },
		"an origin of null": func() (int, string) { return post(t, root+"do", form, header("Origin", "null")) },
		"a cross-site form": func() (int, string) {
			return post(t, root+"do", form, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"))
		},
		"a same-site script": func() (int, string) {
			return get(t, root+"points?run=pole/0001&chart=return", header("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"))
		},
		"a frame": func() (int, string) {
			return get(t, root, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"))
		},
		"another name":       func() (int, string) { return get(t, root, host("rebound.example:80")) },
		"a name that begins": func() (int, string) { return get(t, root, host("127.0.0.1.evil.example")) },
		"another address":    func() (int, string) { return get(t, root, host("10.0.0.1")) },
	} {
		code, said := ask()
		if code != http.StatusForbidden || !strings.Contains(said, "error[E116]") || strings.Contains(said, "pole") {
			t.Errorf("%s: %d %s", name, code, said)
		}
	}
	for name, ask := range map[string]func() (int, string){
		"a tunnel": func() (int, string) {
			return get(t, root, host("localhost:8000"), header("Origin", "http://localhost:8000", "Sec-Fetch-Site", "same-origin"))
		},
		"IPv6": func() (int, string) { return get(t, root, host("[::1]:8000")) },
		"a link": func() (int, string) {
			return get(t, root, header("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"))
		},
		"a person":      func() (int, string) { return get(t, root, header("Sec-Fetch-Site", "none")) },
		"its own style": func() (int, string) { return get(t, root+"style.css", header("Sec-Fetch-Site", "same-origin")) },
	} {
		if code, said := ask(); code != http.StatusOK {
			t.Errorf("%s: %d %s", name, code, said)
		}
	}
	if code, _ := get(t, strings.TrimSuffix(root, "/")); code != http.StatusSeeOther {
		t.Errorf("the address without its last stroke: %d", code)
	}
	if got := j.requests(); got != "" {
		t.Errorf("the job was asked\n%s", got)
	}
	if _, err := loopback.Listen("0.0.0.0:0"); err == nil {
		t.Error("it listens to other machines")
	}
}

// No address is a path: what is not a run of the folder is not there.
func TestAddresses_AreNoPaths(t *testing.T) {
	dir := t.TempDir()
	newJob(t, filepath.Join(dir, "mine"), "pole")
	other := newJob(t, filepath.Join(dir, "other"), "secret")
	root := serve(t, Options{Dir: filepath.Join(dir, "mine")})
	for _, where := range []string{other.run.Dir, "../other/secret/0001", "pole/../../other/secret/0001", "/etc", "..", "", "pole/0001/", "%2e%2e/other/secret/0001", "pole/0001\x00"} {
		for _, page := range []string{"run", "curve.svg", "points", "events", "compare"} {
			if code, said := get(t, root+page+"?chart=return&run="+url.QueryEscape(where)); code != http.StatusNotFound || strings.Contains(said, "secret") {
				t.Errorf("%s of %q: %d %s", page, where, code, said)
			}
		}
		if code, _ := post(t, root+"do", url.Values{"run": {where}, "verb": {"stop"}}); code != http.StatusNotFound {
			t.Errorf("a stop of %q: %d", where, code)
		}
	}
	for _, path := range []string{"../style.css", "..%2f..%2fetc/passwd", "server.go", "pages.html", ".", "run/../../x"} {
		if code, said := get(t, root+path); code == http.StatusOK && !strings.Contains(said, "Runs") {
			t.Errorf("%s: %d %s", path, code, said)
		}
	}
	if got := other.requests(); got != "" {
		t.Errorf("a job of another folder was asked %s", got)
	}
}

// A folder by somebody else: markup and escapes of terminals in every text, numbers at the ends of their range, lines without end, pipes and
// links in the place of files. The page is whole, and nothing of it is markup of theirs.
func TestFolders_OfStrangersAreShownAsText(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	evil := `<script>alert(1)</script><img src=x onerror=alert(2)>"'` + "\x1b[31m\u202e"
	j.set(func(s *control.StatusReply) {
		s.Components[0].Name, s.Components[0].Note, s.Components[1].Version = "evil"+evil, evil, &control.Version{File: evil, Hash: evil}
		s.Components[0].Rate, s.Cause, s.Transition = 1e308, evil, evil
		s.Wires = append(s.Wires, control.WireStatus{Wire: "evil" + evil + ".x → learner.on_dataset", Queued: -5}, control.WireStatus{Wire: "→"}, control.WireStatus{Wire: evil})
		s.Probation = []control.Probation{{Component: evil, Version: control.Version{File: evil}}}
		s.Hosts = []control.HostStatus{{Name: evil, State: evil, Version: evil}}
		high := 1e308
		s.MeanReturn = &high
	})
	if err := j.run.Update(func(i *runs.Info) {
		i.Env, i.Mode, i.Kernel, i.Rlhost, i.Host.CPU, i.File, i.Sets = evil, evil, evil, evil, evil, "/tmp/"+evil, []string{"a=" + evil}
	}); err != nil {
		t.Fatal(err)
	}
	if err := j.run.WritePipeline([]byte("# " + evil + "\n" + pipelineText)); err != nil {
		t.Fatal(err)
	}
	j.write("metrics.jsonl", `{"global_step":1,"charts/episodic_return":1e308,"charts/SPS":-1e308,"losses/entropy":null,"`+strings.ReplaceAll(strings.ReplaceAll(evil, `"`, `\"`), "\x1b", `\u001b`)+`":1}
{"global_step":2,"charts/episodic_return":NaN}
{"global_step":-1e308,"charts/episodic_return":1}
{"global_step":3,"charts/episodic_return":-9e299,"losses/entropy":1e999}
{"global_step":4,"charts/episodic_return":9e299,"charts/SPS":5e-324}
["global_step",5]
`+strings.Repeat("x", 3<<20)+"\n"+`{"global_step":6,"charts/SPS":1}
{"global_step":7,"charts/SP`)
	j.write("episodes.csv", "1,2,NaN,4,true\n"+evil+","+evil+",7,"+evil+",true,0,"+evil+",0\n1,2,1e308,4\n,,,\n")
	j.write("log.jsonl", evil+"\n{\"level\":\""+strings.Repeat("<b>", 9)+"\",\"msg\":\"<b>\\u001b[2J\",\"x\":\"<i>\"}\n"+strings.Repeat("y", 1<<20)+"\n")
	j.write("events.jsonl", "{}\nnot json\n")
	root := serve(t, Options{Dir: dir})
	code, page := get(t, root+"run?run=pole/0001&metric="+url.QueryEscape(evil)+"&x="+url.QueryEscape(evil)+"&from=1e400&to=NaN&diff="+url.QueryEscape(evil))
	if has(t, "the page", page, "&lt;script&gt;alert(1)", "</html>", "lines of metrics cannot be read"); code != http.StatusOK {
		t.Errorf("the page is answered with %d", code)
	}
	if found := regexp.MustCompile(`<script>|<img src=x|<b>|<i>|\x1b|\x{202e}`).FindString(page); found != "" {
		t.Errorf("the page has %q as it came", found)
	}
	for _, q := range []string{"chart=return", "chart=speed", "chart=entropy", "chart=nothing", "metric=" + url.QueryEscape(evil), "chart=return&from=-1e17&to=1e17", "chart=return&from=9&to=1"} {
		code, picture := get(t, root+"curve.svg?run=pole/0001&"+q)
		if q != "chart=nothing" && (code != http.StatusOK || strings.Contains(picture, "<script") || strings.Contains(picture, "NaN")) {
			t.Errorf("the picture %s: %d %s", q, code, picture)
		}
		if code, numbers := get(t, root+"points?run=pole/0001&"+q); q != "chart=nothing" && code != http.StatusOK {
			t.Errorf("the numbers of %s: %d %s", q, code, numbers)
		}
	}
	for _, name := range []string{"metrics.jsonl", "episodes.csv", "log.jsonl", "events.jsonl", "pipeline.toml"} {
		path := filepath.Join(j.run.Dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Until(t, "pipes are told", func() bool {
		code, page = get(t, root+"run?run=pole/0001")
		return code == http.StatusOK && strings.Contains(page, "not a regular file")
	})
}

// Neither ten thousand connections nor readers that never read keep a page from others for long, or let this process grow.
func TestServer_IsNotHeldByOthers(t *testing.T) {
	dir := t.TempDir()
	j := newJob(t, dir, "pole")
	j.write("metrics.jsonl", metricsText(0, 20))
	root := serve(t, Options{Dir: dir})
	u, _ := url.Parse(root)
	for range 200 { // streams that nobody reads
		connect(t, root, "GET "+u.Path+"events?run=pole/0001 HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	testkit.Until(t, "more streams are refused", func() bool {
		code, _ := get(t, root+"events?run=pole/0001", func(q *http.Request) { q.Header.Set("Connection", "close") })
		return code == http.StatusServiceUnavailable
	})
	if code, _ := get(t, root+"run?run=pole/0001"); code != http.StatusOK {
		t.Errorf("with 200 streams a page is answered with %d", code)
	}
	began := time.Now()
	for i := range 10_000 {
		c := connect(t, root, "GET /")
		if i >= 250 {
			_ = c.Close() // this process has fewer descriptors than that
		}
	}
	code, _ := get(t, root+"run?run=pole/0001")
	t.Logf("10,000 connections and a page took %v", time.Since(began))
	if code != http.StatusOK {
		t.Errorf("after 10,000 connections a page is answered with %d", code)
	}
	long := strings.Repeat("a", 1<<20)
	if code, _ := post(t, root+"do", url.Values{"run": {long}}); code != http.StatusBadRequest {
		t.Errorf("a form of 1 MiB is answered with %d", code)
	}
	c := connect(t, root, "GET "+u.Path+" HTTP/1.1\r\nHost: localhost\r\nX: "+long+"\r\n\r\n")
	if answer, _ := io.ReadAll(io.LimitReader(c, 12)); string(answer) != "HTTP/1.1 431" {
		t.Errorf("a head of 1 MiB is answered with %q", answer)
	}
}

// Words may name runs that begin later, and several: the page of a word leads to its run.
func TestWords_NameRunsThatBeginLater(t *testing.T) {
	dir := t.TempDir()
	root := serve(t, Options{Dir: dir, Words: []string{"pole/1"}})
	if _, page := get(t, root); !strings.Contains(page, "not begun") {
		t.Errorf("before the run:\n%s", page)
	}
	newJob(t, dir, "pole")
	testkit.Until(t, "it is there", func() bool {
		code, _ := get(t, root)
		return code == http.StatusSeeOther
	})
	for i := range 3 {
		j := newJob(t, dir, fmt.Sprintf("other%d", i))
		j.write("metrics.jsonl", metricsText(0, 10*(i+2)))
	}
	root = serve(t, Options{Dir: dir})
	_, page := get(t, root+"compare?run=other0/0001&run=other1/0001&run=other2/0001")
	has(t, "the comparison", page, "other0/0001", "other2/0001", "chart=return", "run=other0%2F0001&amp;run=other1%2F0001")
	_, numbers := get(t, root+"points?chart=length&run=other0/0001&run=other2/0001")
	has(t, "its numbers", numbers, `"label":"other0/0001"`, `"label":"other2/0001"`)
}
