package web

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/rlhost/rlhost/pipeline/play"
)

// assets are what the page is made of.
//
//go:embed page.html style.css show.js
var assets embed.FS

// ScriptName is the file of Script, which pages load.
const ScriptName = "show.js"

// Script answers with the script that shows frames.
func Script(w http.ResponseWriter, r *http.Request) {
	asset(w, ScriptName, "text/javascript; charset=utf-8")
}

func asset(w http.ResponseWriter, name, kind string) {
	content, err := assets.ReadFile(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content)
}

// button is a key that can be touched.
type button struct{ Name, Label, Action string }

// labels are the signs of keys.
var labels = map[string]string{"left": "←", "right": "→", "up": "↑", "down": "↓"}

// buttons has one key for each action.
func buttons(keys play.Keys) (list []button) {
	seen := map[string]bool{}
	for _, name := range slices.SortedFunc(maps.Keys(keys), arrowsFirst) {
		action := strings.Trim(fmt.Sprint(keys[name]), "[]")
		if name == play.None || seen[action] {
			continue
		}
		seen[action] = true
		list = append(list, button{name, cmp.Or(labels[name], name), action})
	}
	return list
}

// arrowsFirst compares keys as they stand beside each other.
func arrowsFirst(a, b string) int {
	return cmp.Or(cmp.Compare(len(labels[b]), len(labels[a])), cmp.Compare(a, b))
}

// controls are the keys of all games.
var controls = []button{{"tab", "who plays", ""}, {"p", "pause", ""}, {"n", "one step", ""}, {"b", "one step back", ""},
	{"r", "next episode", ""}, {"-", "slower", ""}, {"+", "faster", ""}}

// Page serves a page with a screen, and the keys of its game.
func Page(s *Screen, title string, keys play.Keys) (http.Handler, error) {
	pages, err := template.ParseFS(assets, "page.html")
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	err = pages.ExecuteTemplate(&page, "page.html", struct {
		Title, All     string
		Keys, Controls []button
	}{title, strings.Join(slices.Sorted(maps.Keys(keys)), " "), buttons(keys), free(controls, keys)})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page.Bytes())
	})
	mux.HandleFunc("GET /frames", func(w http.ResponseWriter, r *http.Request) { _ = s.Frames(w, r) }) // the page has left
	mux.HandleFunc("POST /key", s.Key)
	mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) { asset(w, "style.css", "text/css; charset=utf-8") })
	mux.HandleFunc("GET /"+ScriptName, Script)
	return mux, nil
}

// free are the controls whose keys are no actions.
func free(controls []button, keys play.Keys) (list []button) {
	for _, c := range controls {
		if _, taken := keys[c.Name]; !taken {
			list = append(list, c)
		}
	}
	return list
}
