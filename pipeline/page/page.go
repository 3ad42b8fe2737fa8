package page

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"html/template"
	"strings"

	"github.com/rlhost/rlhost/core/env"
	js "github.com/rlhost/rlhost/sdk/js"
)

// Content is what a page plays.
type Content struct {
	Title string // its heading
	About string // a line below it

	Module []byte            // of the environment
	Args   map[string]string // of the environment
	Grants []string          // capabilities of the module
	Group  int               // of agents that the policy plays; others draw their actions
	Keys   env.Keys          // of a person; none: the page takes digits and arrows
	Seed   uint64            // of the first episode; the next ones count up

	Versions []Version // of the policy, the oldest first; at least one
	First    int       // the version that plays at first
}

// Version is a policy as export.Encode writes it in the format Wasm.
type Version struct {
	Version, EnvSteps uint64
	Module            []byte
}

// packed is the page's own form of Content.
type packed struct {
	Module   []byte            `json:"module"`
	Args     map[string]string `json:"args,omitempty"`
	Grants   []string          `json:"grants,omitempty"`
	Group    int               `json:"group"`
	Keys     env.Keys          `json:"keys"`
	Seed     uint64            `json:"seed"`
	First    int               `json:"first"`
	Versions []packedVersion   `json:"versions"`
}

type packedVersion struct {
	Version  uint64 `json:"version"`
	EnvSteps uint64 `json:"env_steps"`
	Shared   int    `json:"shared"` // first bytes of its module, which are the first version's
	Rest     []byte `json:"rest"`   // of its module
}

var (
	//go:embed page.html
	frame string
	//go:embed style.css
	style string
	//go:embed game.js
	game string
	//go:embed page.js
	script string
)

// Make returns the page. All that c says is text of strangers: none of it becomes a tag or a script.
func Make(c *Content) ([]byte, error) {
	p := packed{Args: c.Args, Grants: c.Grants, Group: c.Group, Keys: c.Keys, Seed: c.Seed, First: c.First}
	if p.Keys == nil {
		p.Keys = env.Keys{}
	}
	var err error
	if p.Module, err = pack(c.Module); err != nil {
		return nil, err
	}
	for i, v := range c.Versions {
		shared := 0
		if i > 0 {
			shared = sharedBytes(c.Versions[0].Module, v.Module)
		}
		rest, err := pack(v.Module[shared:])
		if err != nil {
			return nil, err
		}
		p.Versions = append(p.Versions, packedVersion{v.Version, v.EnvSteps, shared, rest})
	}
	data, err := json.Marshal(p) // it escapes <, > and &
	if err != nil {
		return nil, err
	}
	code := strings.Join([]string{js.Bundle(), game, script}, "\n")
	layout, err := template.New("page").Parse(frame)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = layout.Execute(&out, map[string]any{
		"Title": c.Title, "About": c.About, "Style": template.CSS(style), "Data": template.JS(data), "Script": template.JS(code),
	})
	return out.Bytes(), err
}

// sharedBytes is how many first bytes two modules share: all code of the interpreter.
func sharedBytes(module, other []byte) (n int) {
	for n < min(len(module), len(other)) && module[n] == other[n] {
		n++
	}
	return n
}

// pack compresses bytes, which JSON has in base64.
func pack(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
