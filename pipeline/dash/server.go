package dash

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"html/template"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/control/text"
	"github.com/rlhost/rlhost/pipeline/compare"
	"github.com/rlhost/rlhost/pipeline/curves"
	"github.com/rlhost/rlhost/pipeline/loopback"
	"github.com/rlhost/rlhost/pipeline/play/web"
	"github.com/rlhost/rlhost/pipeline/runs"
)

// Bounds on what strangers can hold of this process.
const (
	maxStreams = 64
	maxAtWork  = 4 // pictures that are drawn at the same time
	eventTime  = 10 * time.Second
)

// How often a stream looks at its run, and how often it has pages draw their pictures again: these take most of a page's time.
const (
	everyLook = 500 * time.Millisecond
	everyDraw = time.Second
)

// assets are what pages are made of.
//
//go:embed pages.html style.css script.js
var assets embed.FS

// Options say which runs are shown.
type Options struct {
	Dir   string   // folder of runs
	Words []string // runs and sets, as compare.Find takes them; none are all of the folder, also ones that begin later
	// Metrics serves the newest figures of live runs for Prometheus; nil serves none.
	Metrics func(list []Figures) http.Handler
	// Opener returns what draws the environment of a run, by its folder; nil draws none.
	Opener func(dir string) Opener
	Log    *slog.Logger
}

// Figures are the newest numbers of a run, by their names in files.
type Figures struct {
	Run, Policy string
	Values      map[string]float64
}

// Server serves the pages. Use New.
type Server struct {
	*loopback.Server
	o       Options
	find    *finder
	pages   *template.Template
	live    *live
	streams chan struct{}
	work    chan struct{}
}

// New returns a server of pages, which reads nothing yet.
func New(o Options) (*Server, error) {
	pages, err := template.New("").Funcs(template.FuncMap{
		"figure": figure, "amount": amount, "cut": cut, "printable": printable, "bytes": bytesOf, "quoted": text.Shell,
	}).ParseFS(assets, "pages.html")
	if err != nil {
		return nil, err
	}
	s := &Server{
		o: o, pages: pages, streams: make(chan struct{}, maxStreams), work: make(chan struct{}, maxAtWork),
		find: &finder{dir: o.Dir, words: o.Words, runs: map[string]*run{}}, live: newLive(o.Opener),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.index)
	mux.HandleFunc("GET /run", s.run)
	mux.HandleFunc("GET /compare", s.compare)
	mux.HandleFunc("GET /curve.svg", s.drawing(answerCurve))
	mux.HandleFunc("GET /video.gif", s.video)
	mux.HandleFunc("GET /live", s.frames)
	mux.HandleFunc("GET /"+web.ScriptName, web.Script)
	mux.HandleFunc("GET /points", s.drawing(answerPoints))
	mux.HandleFunc("GET /events", s.events)
	mux.HandleFunc("POST /do", s.act)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /style.css", s.asset("style.css", "text/css; charset=utf-8"))
	mux.HandleFunc("GET /script.js", s.asset("script.js", "text/javascript; charset=utf-8"))
	s.Server = loopback.New("rlhost dash", mux, o.Log)
	return s, nil
}

// Serve answers until ctx ends. Then nothing is drawn any more.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	defer s.live.close()
	return s.Server.Serve(ctx, l)
}

// page is what a template gets.
type page struct {
	Title, Root, Key  string
	Run               *look
	Wiring            *wiring
	Groups            []row
	Charts            []picture
	Actions           []button
	Words             []string // that are compared
	Differences       [][]string
	Improvement       string
	Said, Line        string
	X, Metric         string
	From, To, Problem string
	Still             bool
	Names, Others     []string
	Refresh           int
	Dir               string
	Query             string

	Live      string // address of the frames of the environment
	LiveStill *web.Still
	LiveImage template.URL // of LiveStill
}

// row is a line of the list of runs.
type row struct {
	Key, ID, State, Env, Return, Steps, Started string
	Runs                                        int
	Live                                        bool
}

// picture is a chart of a page, with the address of its picture.
type picture struct {
	ID, Title, Unit, Address, Points string
}

// button is an action of a page, with its command line.
type button struct {
	action
	Line, Pattern string
}

// page answers with a page; half a page is none.
func (s *Server) page(w http.ResponseWriter, name string, p page) {
	var b bytes.Buffer
	if err := s.pages.ExecuteTemplate(&b, name, p); err != nil {
		s.o.Log.Error("a page could not be made", "page", name, "error", err)
		http.Error(w, "this page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, printable(b.String())) // whatever was in it
}

func (s *Server) asset(name, kind string) http.HandlerFunc {
	content, err := assets.ReadFile(name)
	return func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(content)
	}
}

// index lists the runs.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	groups, err := s.find.list()
	if err != nil {
		s.page(w, "failed", page{Title: "runs", Problem: printable(err.Error())})
		return
	}
	if len(s.find.words) == 1 && len(groups) == 1 && len(groups[0].Runs) > 0 {
		where := "compare?" + url.Values{"run": {groups[0].Word}}.Encode()
		if !groups[0].Set {
			where = "run?" + url.Values{"run": {groups[0].Runs[0].key}}.Encode()
		}
		if !r.URL.Query().Has("all") {
			http.Redirect(w, r, where, http.StatusSeeOther)
			return
		}
	}
	p := page{Title: "runs", Dir: printable(s.o.Dir), Refresh: 5}
	for i := range groups[:min(len(groups), maxRows)] {
		p.Groups = append(p.Groups, groups[i].row())
	}
	s.page(w, "index", p)
}

// maxRows bounds the list of runs.
const maxRows = 500

// row describes a group without looking at its metrics.
func (g *group) row() row {
	line := row{Key: g.Word, ID: cut(g.Word, 80), Runs: len(g.Runs)}
	if len(g.Runs) == 0 {
		line.State = "not begun"
		return line
	}
	line.Started = g.started().Local().Format(time.DateTime)
	if g.Set {
		line.State = fmt.Sprintf("%d runs", len(g.Runs))
		return line
	}
	line.Key = g.Runs[0].key
	info, state := g.Runs[0].described()
	line.State, line.Live, line.Env = state, state == runs.Running, cut(info.Env, 40)
	if o := info.Outcome; o != nil {
		line.Steps = amount(float64(o.EnvSteps))
		if o.Return != nil {
			line.Return = figure(*o.Return)
		}
	}
	return line
}

// chosen returns what an address asks for; ok is false where it names a run that there is not.
func (s *Server) chosen(q url.Values) (a asked, ok bool) {
	a = asked{chart: chartOf(q.Get("chart"), q.Get("metric")), axis: curves.EnvSteps, marks: q.Get("marks") != "0", wide: q.Has("wide")}
	if q.Get("x") == "seconds" {
		a.axis = curves.Seconds
	}
	from, errFrom := strconv.ParseFloat(q.Get("from"), 64)
	to, errTo := strconv.ParseFloat(q.Get("to"), 64)
	if errFrom == nil && errTo == nil && from < to && math.Abs(from) < 1e18 && math.Abs(to) < 1e18 {
		a.from, a.to = from, to
	}
	words := q["run"]
	for _, word := range words[:min(len(words), maxGroups)] {
		g, known, err := s.find.group(word)
		if err != nil || !known {
			return a, false
		}
		a.groups = append(a.groups, g)
	}
	return a, len(a.groups) > 0
}

// drawing answers with a picture that an address asks for. At most maxAtWork are made at the same time.
func (s *Server) drawing(answer func(w http.ResponseWriter, d *drawn)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, ok := s.chosen(r.URL.Query())
		if !ok || len(a.chart.Metrics) == 0 {
			http.NotFound(w, r)
			return
		}
		s.work <- struct{}{}
		defer func() { <-s.work }()
		defer s.find.tidy()
		d := a.draw(r.Context())
		answer(w, &d)
	}
}

// answerCurve answers with a picture as SVG.
func answerCurve(w http.ResponseWriter, d *drawn) {
	var b bytes.Buffer
	if err := curves.Draw(&b, d.Picture); err != nil {
		http.Error(w, "the picture could not be drawn: "+err.Error(), http.StatusInternalServerError)
		return
	}
	// A picture styles itself; it loads nothing and runs nothing.
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write(b.Bytes())
}

// valued is a line of a picture as numbers.
type valued struct {
	Label string    `json:"label"`
	X     []float64 `json:"x"`
	Y     []float64 `json:"y"`
	Low   []float64 `json:"low,omitempty"`
	High  []float64 `json:"high,omitempty"`
}

// answerPoints answers with the numbers of a picture, and where it has them.
func answerPoints(w http.ResponseWriter, d *drawn) {
	at, err := curves.LayoutOf(d.Picture)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	reply := struct {
		Layout curves.Layout `json:"layout"`
		Lines  []valued      `json:"lines"`
		Marks  []mark        `json:"marks"`
	}{Layout: at, Marks: d.marks}
	for _, l := range d.Lines {
		v := valued{Label: l.Label, X: l.Band.X, Y: finite(l.Band.Mean)}
		if l.Band.Curves > 1 {
			v.Low, v.High = finite(l.Band.Low), finite(l.Band.High)
		}
		reply.Lines = append(reply.Lines, v)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply)
}

// run shows one run.
func (s *Server) run(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	one, err := s.find.run(q.Get("run"))
	if err != nil || one == nil {
		w.WriteHeader(http.StatusNotFound)
		s.page(w, "failed", page{Title: "no such run", Problem: "there is no such run here (yet)"})
		return
	}
	now := one.look(r.Context())
	p := s.pageOf(&now, one.key, q)
	s.picture(r.Context(), &p, one, q)
	if with := q.Get("diff"); with != "" {
		p.Differences, p.Problem = s.differences([]string{one.key, with})
	}
	groups, _ := s.find.list() // as a moment ago
	for i := range groups[:min(len(groups), maxRows)] {
		if groups[i].Word != one.key {
			p.Others = append(p.Others, groups[i].Word)
		}
	}
	s.page(w, "run", p)
}

// pageOf returns the page of a run.
func (s *Server) pageOf(now *look, key string, q url.Values) page {
	p := page{Title: now.ID, Run: now, Key: key, X: q.Get("x"), Metric: q.Get("metric"), From: q.Get("from"), To: q.Get("to"), Still: q.Has("still"), Names: now.Names}
	if now.Status != nil {
		p.Wiring = wiringOf(now.Status)
	}
	if now.Live && !p.Still {
		p.Refresh = 5
	}
	address := url.Values{"run": {key}}
	p.Charts, p.Query = chartsOf(address, q, now.Names, now.Lines)
	for _, a := range actions {
		p.Actions = append(p.Actions, button{a, a.line(now, func(string) string { return "" }), pattern(&a, now)})
	}
	return p
}

// pattern is the command line of an action with {name} for its fields, which the script fills in.
func pattern(a *action, now *look) string {
	return a.line(now, func(name string) string { return "{" + name + "}" })
}

// chartsOf returns the pictures of a page: the ones that any of the metrics is in.
func chartsOf(address, q url.Values, names []string, version int) (list []picture, query string) {
	for _, key := range []string{"x", "from", "to"} {
		if v := q.Get(key); v != "" {
			address.Set(key, v)
		}
	}
	query = address.Encode()
	add := func(c chart, key, value string) {
		at := url.Values{key: {value}}.Encode() + "&" + query
		list = append(list, picture{ID: c.ID, Title: c.Title, Unit: c.Unit, Address: "curve.svg?" + at + "&v=" + strconv.Itoa(version), Points: "points?" + at})
	}
	if metric := q.Get("metric"); metric != "" {
		add(chartOf("", metric), "metric", metric)
	}
	for _, c := range charts {
		if slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(c.Metrics, func(m string) bool { return sameMetric(name, m) })
		}) || len(names) == 0 {
			add(c, "chart", c.ID)
		}
	}
	return list, query
}

// compare shows the curves of several runs and sets, and how their pipelines differ.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a, ok := s.chosen(q)
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		s.page(w, "failed", page{Title: "no such run", Problem: "choose runs of the list; one of the words names none"})
		return
	}
	p := page{Title: "comparison", X: q.Get("x"), Metric: q.Get("metric"), From: q.Get("from"), To: q.Get("to"), Still: q.Has("still")}
	address, version := url.Values{}, 0
	for i := range a.groups {
		address.Add("run", a.groups[i].Word)
		p.Words = append(p.Words, a.groups[i].Word)
		p.Groups = append(p.Groups, a.groups[i].row())
		for _, one := range a.groups[i].Runs[:min(len(a.groups[i].Runs), maxOfGroup)] {
			if a.groups[i].Set {
				p.Others = append(p.Others, one.key)
			}
		}
	}
	for i := range a.groups {
		if len(a.groups[i].Runs) > 0 {
			now := a.groups[i].Runs[0].look(r.Context())
			p.Names, version = append(p.Names, now.Names...), version+now.Lines
			if now.Live && !p.Still {
				p.Refresh = 5
			}
		}
	}
	slices.Sort(p.Names)
	p.Names = slices.Compact(p.Names)
	p.Charts, p.Query = chartsOf(address, q, p.Names, version)
	if len(a.groups) > 1 {
		p.Differences, p.Problem = s.differences(p.Words)
		p.Improvement = s.improvement(a.groups)
	}
	s.page(w, "compare", p)
}

// differences returns the keys in which the pipelines of runs differ.
func (s *Server) differences(words []string) (rows [][]string, problem string) {
	var groups []compare.Group
	for _, word := range words {
		g, ok, err := s.find.group(word)
		if err != nil || !ok || len(g.Runs) == 0 {
			return nil, "one of the runs is not here: " + cut(word, 80)
		}
		groups = append(groups, g.compared())
	}
	rows, err := compare.DifferenceRows(groups)
	if err != nil {
		return nil, printable(err.Error())
	}
	for _, row := range rows {
		for i, cell := range row {
			row[i] = cut(cell, 200)
		}
	}
	return rows, ""
}

// compared is a group as compare knows it.
func (g *group) compared() compare.Group {
	c := compare.Group{Value: g.Word}
	for _, r := range g.Runs {
		info, _ := r.described()
		c.Runs = append(c.Runs, &compare.Run{Dir: r.dir, Info: info})
	}
	return c
}

// improvement says how two sets compare, or why they cannot be; nothing of single runs.
func (s *Server) improvement(groups []group) string {
	if len(groups) != 2 {
		return ""
	}
	lines, err := compare.Improvement(groups[0].compared(), groups[1].compared())
	if err != nil {
		return printable(err.Error())
	}
	return printable(lines)
}

// metrics serves the newest figures of the runs that are live.
func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.o.Metrics == nil {
		http.NotFound(w, r)
		return
	}
	groups, err := s.find.list()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer s.find.tidy()
	var list []Figures
	for _, g := range groups {
		for _, one := range g.Runs {
			if _, state := one.described(); state == runs.Running && len(list) < maxOfGroup {
				list = append(list, one.figures(r.Context()))
			}
		}
	}
	s.o.Metrics(list).ServeHTTP(w, r)
}

// parts are the parts of the page of a run that change.
var parts = []string{"head", "cause", "wiring", "components", "episodes", "evaluations", "videos", "changes", "records", "resources"}

// events tells what changes of a run, part by part, as server-sent events: the first time all.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	a, ok := s.chosen(r.URL.Query())
	if !ok {
		http.NotFound(w, r)
		return
	}
	if !s.begin(w) {
		return
	}
	defer s.end()
	w.Header().Set("Content-Type", "text/event-stream")
	e := &stream{s: s, w: w, out: http.NewResponseController(w), seed: maphash.MakeSeed(), sent: map[string]uint64{}}
	tick := time.NewTicker(everyLook)
	defer tick.Stop()
	for e.tell(r.Context(), &a) == nil {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// begin takes a place among the streams, which end gives back; false, and an answer, where there is none.
func (s *Server) begin(w http.ResponseWriter) bool {
	select {
	case s.streams <- struct{}{}:
		return true
	default:
		http.Error(w, fmt.Sprintf("%d pages are open already: close one, or load this one again by hand", maxStreams), http.StatusServiceUnavailable)
		return false
	}
}

func (s *Server) end() { <-s.streams }

// stream is what one page has been told.
type stream struct {
	s     *Server
	w     http.ResponseWriter
	out   *http.ResponseController
	seed  maphash.Seed
	sent  map[string]uint64
	lines int       // that the pictures show
	drawn time.Time // when the page last drew them
	quiet int       // looks without anything new
}

// quietLooks is after how many looks without anything new a stream says that it lives.
const quietLooks = 20

// tell sends what is new.
func (e *stream) tell(ctx context.Context, a *asked) error {
	var b bytes.Buffer
	lines := 0
	for _, g := range a.groups {
		for _, one := range g.Runs[:min(len(g.Runs), maxOfGroup)] {
			now := one.look(ctx)
			lines += now.Lines
			if len(a.groups) == 1 && !g.Set {
				if err := e.parts(&b, &now, one.key); err != nil {
					return err
				}
			}
		}
	}
	if now := time.Now(); lines != e.lines && now.Sub(e.drawn) >= everyDraw-everyLook/2 {
		fmt.Fprintf(&b, "event: curves\ndata: %d\n\n", lines)
		e.lines, e.drawn = lines, now
	}
	if e.quiet++; b.Len() == 0 && e.quiet < quietLooks {
		return nil
	} else if b.Len() == 0 {
		b.WriteString(": nothing new\n\n")
	}
	e.quiet = 0
	if err := loopback.Extend(e.w, eventTime); err != nil {
		return err
	}
	if _, err := e.w.Write(b.Bytes()); err != nil {
		return err
	}
	return e.out.Flush()
}

// parts writes the parts that differ from what was sent.
func (e *stream) parts(b *bytes.Buffer, now *look, key string) error {
	p := page{Run: now, Key: key}
	if now.Status != nil {
		p.Wiring = wiringOf(now.Status)
	}
	for _, name := range parts {
		var html strings.Builder
		if err := e.s.pages.ExecuteTemplate(&html, name, p); err != nil {
			return err
		}
		if sum := maphash.String(e.seed, html.String()); e.sent[name] != sum {
			e.sent[name] = sum
			data, err := json.Marshal([2]string{name, printable(html.String())})
			if err != nil {
				return err
			}
			fmt.Fprintf(b, "event: part\ndata: %s\n\n", data)
		}
	}
	return nil
}
