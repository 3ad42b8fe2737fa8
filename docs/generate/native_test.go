package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/rlhost/rlhost/core/env"
	"github.com/rlhost/rlhost/hostabi"
	"github.com/rlhost/rlhost/hostabi/native"
)

const (
	nativePage = "../../docs/reference/native-protocol.md"
	abiFolder  = "../../hostabi"
)

// mark is what stands before a table that tests compare: its kind and the name of the struct.
var mark = regexp.MustCompile(`^<!-- (layout|document): (\w+) -->$`)

// markedTable is a table of the page without its two first lines, each row by the names of its columns.
type markedTable struct {
	kind, name string
	rows       []map[string]string
}

// tablesOf returns the tables of the page. Those without a mark have no name.
func tablesOf(t *testing.T) (list []markedTable) {
	t.Helper()
	text, err := os.ReadFile(nativePage)
	if err != nil {
		t.Fatal(err)
	}
	var next markedTable
	var columns []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if m := mark.FindStringSubmatch(line); m != nil {
			next = markedTable{kind: m[1], name: m[2]}
		}
		if !strings.HasPrefix(line, "|") {
			columns = nil
			continue
		}
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, "/"), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case columns == nil:
			columns = cells
			list = append(list, next)
			next = markedTable{}
		case strings.HasPrefix(cells[0], "---"):
		case len(cells) != len(columns):
			t.Fatalf("a row of %d cells, the table has %d: %s", len(cells), len(columns), line)
		default:
			row := map[string]string{}
			for i, c := range columns {
				row[c] = cells[i]
			}
			last := &list[len(list)-1]
			last.rows = append(last.rows, row)
		}
	}
	return list
}

// compare reports the first line in which two tables differ.
func compare(t *testing.T, name string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	for i := range max(len(got), len(want)) {
		has, wants := "nothing", "nothing"
		if i < len(got) {
			has = got[i]
		}
		if i < len(want) {
			wants = want[i]
		}
		if has != wants {
			t.Errorf("%s: the table of %s has %q in row %d, the source %q", nativePage, name, has, i+1, wants)
			return
		}
	}
}

// snake is the name of a field on the page.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// widthOf is the type of a field of a layout on the page.
func widthOf(typ reflect.Type) string {
	if typ.Kind() == reflect.Array {
		return fmt.Sprintf("%s[%d]", widthOf(typ.Elem()), typ.Len())
	}
	return "u" + strconv.Itoa(typ.Bits())
}

func TestNative_LayoutsAreThoseOfTheStructs(t *testing.T) {
	want := map[string][]string{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[hostabi.Message](), reflect.TypeFor[hostabi.RingHeader](), reflect.TypeFor[hostabi.ArenaHeader](), reflect.TypeFor[hostabi.ArenaBlock](),
	} {
		var rows []string
		for f := range typ.Fields() {
			if f.Name != "_" {
				rows = append(rows, fmt.Sprintf("%d %s %s", f.Offset, widthOf(f.Type), snake(f.Name)))
			}
		}
		want[typ.Name()] = append(rows, fmt.Sprintf("%d", typ.Size()))
	}
	for _, table := range tablesOf(t) {
		if table.kind != "layout" {
			continue
		}
		var got []string
		for _, row := range table.rows {
			got = append(got, strings.TrimSpace(row["offset"]+" "+row["type"]+" "+row["field"]))
		}
		compare(t, table.name, got, want[table.name])
		delete(want, table.name)
	}
	for name := range want {
		t.Errorf("%s has no layout of %s", nativePage, name)
	}
}

// ofQueues are constants of rings that only queues use, which sdk/c/native has.
var ofQueues = []string{
	"RingQueue", "RingBytes", "RingCellHeadBytes", "MaxRingPayload", "MaxRingBatch", "MaxRingLimit",
	"RingOwnerBits", "RingCountBits", "RingStateBits", "RingPositionBits", "RingBytesCountBits", "RingBytesPositionBits",
	"RingFree", "RingWriting", "RingReady", "RingReading", "RingVoid", "RingVoiding",
}

// constantsOf returns the constants of files of package hostabi.
func constantsOf(t *testing.T, names ...string) map[string]uint64 {
	t.Helper()
	set := token.NewFileSet()
	var files []*ast.File
	paths, err := filepath.Glob(abiFolder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	conf := types.Config{Error: func(error) {}} // imports are not resolved: no constant needs one
	pkg, _ := conf.Check("hostabi", set, files, nil)
	list := map[string]uint64{}
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		if !ok || !c.Exported() || !slices.Contains(names, filepath.Base(set.Position(c.Pos()).Filename)) || slices.Contains(ofQueues, name) {
			continue
		}
		v, exact := constant.Uint64Val(constant.ToInt(c.Val()))
		if !exact {
			t.Fatalf("%s is no number: %v", name, c.Val())
		}
		list[name] = v
	}
	return list
}

func TestNative_ConstantsAreThoseOfTheSources(t *testing.T) {
	want := constantsOf(t, "arena.go", "handle.go", "link.go", "message.go", "ring.go")
	if want["LinkAck"] != uint64(hostabi.LinkAck) || want["MaxGeneration"] != hostabi.MaxGeneration {
		t.Fatalf("the constants are not read: %v", want)
	}
	for _, table := range tablesOf(t) {
		for _, row := range table.rows {
			name, text := row["name"], row["value"]
			if name == "" {
				continue
			}
			value, known := want[name]
			if got, err := strconv.ParseUint(text, 0, 64); err != nil || !known || got != value {
				t.Errorf("%s: %s is %s, in the source %d (known: %v)", nativePage, name, text, value, known)
			}
			delete(want, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t.Errorf("%s does not tell of %s = %d", nativePage, name, want[name])
	}
}

func TestNative_PackedNumbersAreAsTheSourcesPackThem(t *testing.T) {
	text, err := os.ReadFile(nativePage)
	if err != nil {
		t.Fatal(err)
	}
	h := hostabi.MakeHandle(1, 0, 0)
	for _, want := range []string{
		fmt.Sprintf("`arena << %d | block << %d | generation`", bits.TrailingZeros64(uint64(h)), bits.TrailingZeros64(uint64(hostabi.MakeHandle(0, 1, 0)))),
		fmt.Sprintf(`generation << %d \| state << %d \| holders`, hostabi.ArenaHolderBits+hostabi.ArenaStateBits, hostabi.ArenaHolderBits),
		fmt.Sprintf("has bits for %d holders: the host and %d processes", hostabi.ArenaHolderBits, hostabi.MaxHolder),
		fmt.Sprintf("`1|%d|unix|PATH|grpc|`", native.Version), fmt.Sprintf("| protocol of go-plugin | %d |", native.Version),
		fmt.Sprintf("| `abi` of Description | `%s` |", native.ABI),
		fmt.Sprintf("of up to %d KiB with exactly one field set,\nand up to %d files", native.MaxFrame>>10, native.MaxFiles),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say %q", nativePage, want)
		}
	}
}

func TestLimits_HaveTheHoldersOfArenas(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/limits.md")
	if want := fmt.Sprintf("| Processes with native components at a time | %d |", hostabi.MaxHolder); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("limits.md does not say %q (%v)", want, err)
	}
}

// documents are the documents that no other one has as a field.
var documents = []reflect.Type{
	reflect.TypeFor[native.Description](), reflect.TypeFor[native.Configuration](), reflect.TypeFor[native.Configured](),
	reflect.TypeFor[native.StateSize](), reflect.TypeFor[native.Pausing](), reflect.TypeFor[native.WaitingList](), reflect.TypeFor[env.Source](),
	reflect.TypeFor[native.EnvLoaded](), reflect.TypeFor[native.EnvBatch](), reflect.TypeFor[native.EnvScratch](), reflect.TypeFor[native.EnvStateCall](),
	reflect.TypeFor[native.PolicyWanted](), reflect.TypeFor[native.PolicyMade](), reflect.TypeFor[native.PolicyScratch](), reflect.TypeFor[native.Frame](),
}

// writer collects the documents that fields lead to.
type writer map[string][]string

// typeOf returns the type of a field as the page has it.
func (w writer) typeOf(typ reflect.Type) string {
	switch {
	case typ == reflect.TypeFor[json.RawMessage](), typ.Kind() == reflect.Interface:
		return "any"
	case typ == reflect.TypeFor[[]byte]():
		return "base64"
	case typ == reflect.TypeFor[native.U64]():
		return "decimal"
	}
	switch typ.Kind() {
	case reflect.Uint64:
		return "count"
	case reflect.String:
		return "text"
	case reflect.Bool, reflect.Int:
		return typ.Kind().String()
	case reflect.Pointer:
		return w.typeOf(typ.Elem())
	case reflect.Slice:
		return "[" + w.typeOf(typ.Elem()) + "]"
	case reflect.Array:
		return fmt.Sprintf("[%s; %d]", w.typeOf(typ.Elem()), typ.Len())
	case reflect.Map:
		return "{" + w.typeOf(typ.Elem()) + "}"
	case reflect.Struct:
		w.add(typ)
		return typ.Name()
	default:
		return typ.Kind().String()[:1] + strconv.Itoa(typ.Bits())
	}
}

// add notes the rows of a document. Fields of embedded structs are its own.
func (w writer) add(typ reflect.Type) {
	if _, ok := w[typ.Name()]; ok {
		return
	}
	w[typ.Name()] = nil
	var rows []string
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			rows = append(rows, name+" "+w.typeOf(f.Type))
		}
	}
	w[typ.Name()] = rows
}

func TestNative_DocumentsAreThoseOfTheSources(t *testing.T) {
	want := writer{}
	for _, typ := range documents {
		want.add(typ)
	}
	for _, table := range tablesOf(t) {
		if table.kind != "document" {
			continue
		}
		var got []string
		for _, row := range table.rows {
			got = append(got, row["field"]+" "+row["type"])
		}
		slices.Sort(got)
		rows := slices.Sorted(slices.Values(want[table.name]))
		compare(t, table.name, got, rows)
		delete(want, table.name)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t.Errorf("%s has no document %s", nativePage, name)
	}
}
