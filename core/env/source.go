package env

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rlhost/rlhost/core/files"
	"github.com/rlhost/rlhost/core/place"
	"github.com/rlhost/rlhost/core/table"
)

// Source says where an environment is loaded from and how it runs: an [env.NAME] table. Pipeline files and the
// graph hold this struct, and processes that load environments get it as JSON.
type Source struct {
	Name string `json:"name"` // of the environment, or of who runs it; for messages

	// Use is the name@version of a built-in environment, the path of a module, or a native plugin's name of an environment.
	Use     string `toml:"use" json:"use" doc:"Environment: NAME@VERSION of a built-in one, the path of a module, or PLUGIN:ENVIRONMENT." default:"required"`
	Runtime string `toml:"runtime" json:"-" doc:"Where the environments of a module run." range:"host, process"`
	Workers int    `toml:"workers" json:"-" doc:"Processes for each batch of environments that run in processes." range:"1 or more"`
	Threads int    `toml:"threads" json:"threads,omitempty" doc:"Threads of a process that step environments of Python side by side, for environments that wait in their steps." range:"1 to 256"`
	// Cores, Nice and LibraryThreads are the place of the processes; see Place.
	Cores          string `toml:"cores" json:"-" doc:"Processors that the processes run on, such as \"0-3,6\"; empty = any."`
	Nice           int    `toml:"nice" json:"-" doc:"How far the processes stand back for others: 19 = furthest, below 0 = go before them." range:"-20 to 19"`
	LibraryThreads int    `toml:"library_threads" json:"-" doc:"Threads of the numeric libraries in each process: OpenMP, OpenBLAS, MKL, PyTorch; 0 = as they like." range:"1 to 1024"`

	Args   map[string]string `toml:"args" json:"args" doc:"Arguments of the environment, by name; see [environments](environments.md)." type:"table"`
	Limits `toml:"limits"`
	Grants []string `toml:"grants" json:"grants" doc:"Imports and capabilities that a module may use." range:"log, metric, clock"`
	Data   string   `toml:"data" json:"data,omitempty" doc:"Folder that a module may read, as /data; nothing can be written there."`
	// Folder is the content of Data, where that has been read already; see ReadData.
	Folder *files.Folder `json:"-"`
	SHA256 string        `toml:"sha256" json:"-" doc:"SHA-256 that the file must have; empty takes any."`
	// Keys are the actions of a person's keys; see ParseKeys.
	Keys map[string]string `toml:"keys" json:"-" doc:"Keys of a person who plays, such as { left = 0 }; see [play](../how-to/play.md#keys)." type:"table"`
	// Wrap lists the wrappers around the environments, the innermost first.
	Wrap []Wrapper `toml:"wrap" json:"wrap,omitempty" doc:"[Wrappers](environments.md#wrappers) around the environment, the innermost first."`
}

// Place returns where processes of the environments run.
func (s *Source) Place() place.Place {
	return place.Place{Cores: s.Cores, Nice: s.Nice, Threads: s.LibraryThreads}
}

// Wrapper is one wrapper of a list: its name with its value, as plain maps, lists and scalars.
type Wrapper map[string]any

// Rewrapped returns the list of wrappers as TOML with another table, given as TOML, at one place, and the table that it replaces. Instead of
// a table, the path of a module replaces the module of the present table. ok is false for a place that the list does not have.
func (s *Source) Rewrapped(at int, wrapper string) (list, was string, ok bool) {
	tables := make([]string, len(s.Wrap))
	for i, w := range s.Wrap {
		tables[i] = w.Text()
	}
	if at < 0 || at >= len(tables) {
		return "", "", false
	}
	if strings.HasSuffix(wrapper, ".wasm") {
		wrapper = s.withModule(at, wrapper)
	}
	was, tables[at] = tables[at], wrapper
	return "[" + strings.Join(tables, ", ") + "]", was, true
}

// Text returns the table of the wrapper as TOML.
func (w Wrapper) Text() string { return table.EncodeValue(map[string]any(w)) }

// WrapText returns a list of wrappers as TOML.
func WrapText(list []Wrapper) string {
	tables := make([]string, len(list))
	for i, w := range list {
		tables[i] = w.Text()
	}
	return "[" + strings.Join(tables, ", ") + "]"
}

// withModule returns the table of a wrapper as TOML with another module.
func (s *Source) withModule(at int, use string) string {
	w := map[string]any{}
	if _, module := s.Wrap[at][KeyUse]; module {
		maps.Copy(w, s.Wrap[at])
		delete(w, "sha256")
	}
	w[KeyUse] = use
	return table.EncodeValue(w)
}

// Keys of a wrapper that is a module.
const (
	KeyUse  = "use"  // the path of its file
	KeyData = "data" // the folder that it may read
)

// In returns the source for a process outside dir, the folder that the paths of wrappers and of data are relative to. Use stays as it is.
func (s *Source) In(dir string) Source {
	there := *s
	there.Wrap = s.WrapAt(func(path string) string { return files.In(dir, path) })
	there.Data = s.DataIn(dir)
	return there
}

// DataIn returns the path of the folder of data for a process outside dir; empty if there is none.
func (s *Source) DataIn(dir string) string {
	if s.Data == "" {
		return ""
	}
	return files.In(dir, s.Data)
}

// ReadData returns the source with the content of its folder of data, which is read once for all that look at it. It stays unread if that
// cannot be done, which loading reports.
func (s *Source) ReadData(dir string) Source {
	there := *s
	if there.Folder == nil && s.Data != "" {
		there.Folder, _ = files.ReadFolder(s.DataIn(dir))
	}
	return there
}

// DataDigest identifies the content of the folder of data: empty if there is none, or it cannot be read, which loading reports.
func (s *Source) DataDigest(dir string) string {
	if there := s.ReadData(dir); there.Folder != nil {
		return there.Folder.Digest
	}
	return ""
}

// WrapDigest identifies the modules around the environments by the SHA-256 of their files and the digests of their data: empty if there
// are none. dir is as for In.
func (s *Source) WrapDigest(dir string) (digest string) {
	there := s.In(dir)
	for _, use := range there.WrapModules() {
		sum, _ := files.SHA256(use) // loading reports a file that cannot be read
		digest += " " + sum
	}
	for place, data := range there.WrapData() {
		sum, _ := files.FolderSHA256(data) // likewise
		digest += fmt.Sprintf(" %d:%s", place, sum)
	}
	return digest
}

// wrapPath matches a module's path, or its folder of data, in the output of WrapText; the tables of other keys, which may have such a key
// too, are matched as a whole.
var wrapPath = regexp.MustCompile(`\w+ = \{[^{}]*\}|\b(use|data) = "[^"]*"`)

// WithoutWrapPaths leaves out of a text that WrapText has written where modules and their data lie.
func WithoutWrapPaths(text string) string {
	return wrapPath.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasSuffix(found, "}") {
			return found
		}
		key, _, _ := strings.Cut(found, " ")
		return key
	})
}

// WrapModules returns the paths of the wrappers that are modules by their places in Wrap, in the order of these.
func (s *Source) WrapModules() iter.Seq2[int, string] { return s.wrapPaths(KeyUse) }

// WrapData returns the folders of data of the wrappers that are modules by their places in Wrap, in the order of these.
func (s *Source) WrapData() iter.Seq2[int, string] { return s.wrapPaths(KeyData) }

// wrapPaths returns the paths that the wrappers which are modules have under a key.
func (s *Source) wrapPaths(key string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for place, w := range s.Wrap {
			_, module := w[KeyUse].(string)
			if path, ok := w[key].(string); module && ok && path != "" && !yield(place, path) {
				return
			}
		}
	}
}

// WrapUsing returns Wrap with other paths of the modules.
func (s *Source) WrapUsing(path func(place int, use string) string) []Wrapper {
	return s.wrapWith(KeyUse, path)
}

// WrapReading returns Wrap with other folders of data.
func (s *Source) WrapReading(path func(place int, data string) string) []Wrapper {
	return s.wrapWith(KeyData, path)
}

func (s *Source) wrapWith(key string, path func(place int, was string) string) []Wrapper {
	list := slices.Clone(s.Wrap)
	for place, was := range s.wrapPaths(key) {
		list[place] = maps.Clone(list[place])
		list[place][key] = path(place, was)
	}
	return list
}

// WrapAt returns Wrap with other paths of the modules and of their folders of data.
func (s *Source) WrapAt(path func(was string) string) []Wrapper {
	other := func(_ int, was string) string { return path(was) }
	moved := Source{Wrap: s.WrapUsing(other)}
	return moved.WrapReading(other)
}

// WrapMoved is WrapAt for the relative paths.
func (s *Source) WrapMoved(move func(path string) string) []Wrapper {
	return s.WrapAt(func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return move(path)
	})
}

// Hashing is optional for a Plugin with wrappers around the environments of another one.
type Hashing interface {
	// WrapHashes returns the SHA-256 of the wrappers that are modules, the innermost first.
	WrapHashes() []string
}

// WrapHashes returns the SHA-256 of the modules around environments of a plugin, by their places in Wrap.
func (s *Source) WrapHashes(p Plugin) map[int]string {
	x, ok := p.(Hashing)
	if !ok {
		return nil
	}
	hashes, list := map[int]string{}, x.WrapHashes()
	for place := range s.WrapModules() {
		if len(list) > 0 {
			hashes[place], list = list[0], list[1:]
		}
	}
	return hashes
}

// UnmarshalJSON keeps numbers as they are written, so that integers stay integers.
func (w *Wrapper) UnmarshalJSON(doc []byte) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return d.Decode((*map[string]any)(w))
}

// Limits bound an environment; zero means the runtime's default.
type Limits struct {
	Memory uint64        `toml:"memory,bytes" json:"memory" doc:"Most memory of an instance of a module; of each process of Python's environments, whose default is no limit." default:"\"64MiB\""`
	Step   time.Duration `toml:"step" json:"step_ns" doc:"Longest call that steps all environments of an instance; of Python's, longest step of one." default:"\"1s\""`
	Init   time.Duration `toml:"init" json:"init_ns" doc:"Longest call before the first step." default:"\"10s\""`

	Compile       time.Duration `toml:"compile" json:"compile_ns,omitempty" doc:"Longest compilation of a module." default:"\"1m\""`
	CompileMemory uint64        `toml:"compile_memory,bytes" json:"compile_memory,omitempty" doc:"Most memory of a module's compilation." default:"\"1GiB\""`
}

// Where the environments of a module run.
const (
	InHost    = "host"
	InProcess = "process"
)

// DefaultSource returns a table with the defaults of [env.NAME].
func DefaultSource() Source { return Source{Runtime: InHost, Workers: 1, Threads: 1} }
