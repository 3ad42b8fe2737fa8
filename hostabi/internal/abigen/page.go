package main

import (
	"fmt"
	"go/constant"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rlhost/rlhost/hostabi"
)

// The specifications, whose tables are generated.
const (
	envPage       = "docs/reference/env-abi.md"
	componentPage = "docs/reference/component-abi.md"
)

var generated = regexp.MustCompile(`(?s)(<!-- generated: (\w+) -->\n).*?(<!-- end -->)`)

// renderPage returns a page of the module in root with its tables as they must be.
func renderPage(root, path string, m *model) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		return "", err
	}
	tables := map[string]func(*strings.Builder){
		"roles": m.roleTable, "status": m.statusTable, "records": m.recordTables, "constants": m.constantTables,
		"exports": func(b *strings.Builder) { m.functionTable(b, "", m.exports) },
		"imports": func(b *strings.Builder) { m.functionTable(b, m.module+".", m.imports) },
	}
	for _, mark := range generated.FindAllStringSubmatch(string(text), -1) {
		if tables[mark[2]] == nil {
			return "", fmt.Errorf("%s: no table %q", path, mark[2])
		}
	}
	return generated.ReplaceAllStringFunc(string(text), func(s string) string {
		mark := generated.FindStringSubmatch(s)
		var b strings.Builder
		tables[mark[2]](&b)
		return mark[1] + "\n" + b.String() + "\n" + mark[3]
	}), nil
}

// described is the beginning of a function's comment that repeats its signature.
var described = regexp.MustCompile(`^\w+( \(optional[^)]*\))?: (\([^)]*\)( ->|\.)? ?)?`)

// cell writes the text of a comment as that of a table's cell.
func (m *model) cell(doc []string) string {
	return strings.ReplaceAll(m.translate(strings.Join(doc, " ")), "|", `\|`)
}

const pageWidth = 100

var sentenceEnd = regexp.MustCompile(`\. ([A-Z])`)

// prose breaks a text into lines of a page: one sentence a line, and none wider than a page.
func prose(text string) string {
	var lines []string
	for sentence := range strings.SplitSeq(sentenceEnd.ReplaceAllString(text, ".\n$1"), "\n") {
		line := ""
		for word := range strings.FieldsSeq(sentence) {
			if line != "" && len(line)+1+len(word) > pageWidth {
				lines, line = append(lines, line), ""
			}
			line = strings.TrimSpace(line + " " + word)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// constants returns the constants of a type.
func (m *model) constants(typ string) (list []number) {
	for _, g := range m.groups {
		for _, c := range g.constants {
			if c.typ == typ {
				list = append(list, c)
			}
		}
	}
	return list
}

func (m *model) roleTable(b *strings.Builder) {
	b.WriteString("| role | | rows | type | how many | |\n|---|---|---|---|---|---|\n")
	rows := map[hostabi.TensorFlags]string{hostabi.TensorAtT: "T", hostabi.TensorAtT1: "T+1", hostabi.TensorNoTime: "1"}
	for _, c := range m.constants("Role") {
		number, _ := constant.Int64Val(c.value)
		rule := hostabi.Role(number).Rule()
		typ, many := "any", "one"
		if rule.DType != 0 {
			typ = rule.DType.String()
		}
		if rule.Scalar {
			typ += ", a scalar"
		}
		if rule.Several {
			many = "any number"
		}
		if rule.Required {
			many += ", required"
		}
		fmt.Fprintf(b, "| `RL_%s` | %s | %s | %s | %s | %s |\n", constantName(c), c.value.ExactString(), rows[rule.Time], typ, many, m.cell(c.doc))
	}
}

func (m *model) statusTable(b *strings.Builder) {
	b.WriteString("| status | | |\n|---|---|---|\n")
	for _, c := range m.constants("Status") {
		fmt.Fprintf(b, "| `RL_%s` | %s | %s |\n", constantName(c), c.value.ExactString(), m.cell(c.doc))
	}
}

func (m *model) functionTable(b *strings.Builder, prefix string, list []function) {
	b.WriteString("| function | |\n|---|---|\n")
	for _, f := range list {
		if f.Name == hostabi.ExportInitialize {
			continue
		}
		var params []string
		for i, p := range f.params {
			params = append(params, p+" "+valueName(f.Params[i]))
		}
		result := ""
		if len(f.Results) > 0 {
			result = " → " + valueName(f.Results[0])
		}
		required := ""
		if f.Required {
			required = " Required."
		}
		text := described.ReplaceAllString(m.cell(f.doc), "")
		fmt.Fprintf(b, "| `%s%s(%s)%s` | %s%s |\n", prefix, f.Name, strings.Join(params, ", "), result, strings.TrimSpace(text), required)
	}
}

func valueName(v hostabi.ValueType) string {
	switch v {
	case hostabi.TypeI64:
		return "i64"
	case hostabi.TypeF64:
		return "f64"
	default:
		return "i32"
	}
}

func (m *model) recordTables(b *strings.Builder) {
	for _, r := range m.records {
		fmt.Fprintf(b, "**`rl_%s`**, %d bytes.\n%s\n\n| at | field | |\n|---|---|---|\n", snake(r.name), r.size, prose(m.cell(r.doc)))
		for _, f := range r.fields {
			typ, dim := typeC(f.typ)
			fmt.Fprintf(b, "| %d | `%s %s%s` | %s |\n", f.offset, typ, fieldC(f.name), dim, m.cell([]string{f.doc}))
		}
		b.WriteString("\n")
	}
}

func (m *model) constantTables(b *strings.Builder) {
	for _, g := range m.groups {
		if typ := g.constants[0].typ; typ == "Role" || typ == "Status" {
			continue
		}
		fmt.Fprintf(b, "%s\n\n| | | |\n|---|---|---|\n", prose(m.cell(g.doc)))
		for _, c := range g.constants {
			fmt.Fprintf(b, "| `RL_%s` | %s | %s |\n", constantName(c), c.value.ExactString(), m.cell(c.doc))
		}
		b.WriteString("\n")
	}
}
