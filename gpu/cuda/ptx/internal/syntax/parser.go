package syntax

import (
	"fmt"
	"strconv"
	"strings"
)

// parser reads tokens. Its first error ends it: fail panics with an *Error, which Parse recovers.
type parser struct {
	text   string
	tokens []token
	at     int
	module *Module
}

// Parse reads a PTX text. Unknown text is an *Error, which names the line.
func Parse(text string) (m *Module, err error) {
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{text: text, tokens: tokens, module: &Module{Variables: map[string]Variable{}}}
	defer func() {
		if r := recover(); r != nil {
			syntax, ours := r.(*Error)
			if !ours {
				panic(r)
			}
			m, err = nil, syntax
		}
	}()
	for p.peek().text != "" {
		p.directive()
	}
	if p.module.Version == "" || p.module.Target == "" {
		p.fail(p.peek(), "the text has no .version or no .target")
	}
	p.module.EndLine = p.peek().line
	return p.module, nil
}

func (p *parser) fail(t token, format string, args ...any) {
	panic(&Error{t.line, fmt.Sprintf(format, args...)})
}

func (p *parser) peek() token { return p.tokens[p.at] }

// next returns a token and advances; after the last it stays.
func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.text != "" {
		p.at++
	}
	return t
}

// accept advances if the next token is text.
func (p *parser) accept(text string) bool {
	if p.peek().text != text || text == "" {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(text string) token {
	t := p.next()
	if t.text != text {
		p.fail(t, "%q where %q is expected", t.text, text)
	}
	return t
}

// word returns the next token, which must be a word.
func (p *parser) word(what string) token {
	t := p.next()
	if t.text == "" || !isWord(t.text[0]) {
		p.fail(t, "%q where %s is expected", t.text, what)
	}
	return t
}

// name returns the next token, which must be a name that the text may define.
func (p *parser) name(what string) string {
	t := p.word(what)
	if c := t.text[0]; c == '.' || c >= '0' && c <= '9' {
		p.fail(t, "%q where %s is expected", t.text, what)
	}
	return t.text
}

// number returns the next token as an integer from least to most.
func (p *parser) number(what string, least, most int) int {
	t := p.word(what)
	n, err := strconv.ParseInt(strings.TrimSuffix(t.text, "U"), 0, 64)
	if err != nil || n < int64(least) || n > int64(most) {
		p.fail(t, "%q where %s from %d to %d is expected", t.text, what, least, most)
	}
	return int(n)
}

// skipLine goes to the first token of another line.
func (p *parser) skipLine(line int) {
	for p.peek().text != "" && p.peek().line == line {
		p.at++
	}
}

// directive reads one part of a module.
func (p *parser) directive() {
	t := p.word("a directive")
	switch t.text {
	case ".version":
		p.module.Version = p.word("a version").text
	case ".target":
		p.module.Target = p.word("a target").text
		for p.accept(",") {
			p.word("a target")
		}
	case ".address_size":
		if n := p.word("an address size"); n.text != "64" {
			p.fail(n, "address size %s: only 64 is run", n.text)
		}
	case ".file", ".loc":
		p.skipLine(t.line)
	case ".section":
		p.section()
	case ".visible", ".weak", ".common":
	case ".extern":
		p.external()
	case ".entry":
		p.entry(t.line)
	case ".global", ".const", ".shared":
		p.variableOfModule(t)
	default:
		p.fail(t, "%q is not a directive that is run", t.text)
	}
}

// section skips debug information: .section name { … }.
func (p *parser) section() {
	p.word("a section")
	p.expect("{")
	for !p.accept("}") {
		if t := p.next(); t.text == "" {
			p.fail(t, "a section does not end")
		}
	}
}

// external reads dynamic shared memory, the only thing from elsewhere that an entry may use.
func (p *parser) external() {
	t := p.expect(".shared")
	v := p.variable(t.text)
	if v.Bytes != 0 {
		p.fail(t, "external variable %s has a size", v.Name)
	}
	p.expect(";")
	v.Dynamic = true
	p.module.Variables[v.Name] = v
}

const maxVariable = 1 << 26

// variable reads what follows the space of a variable, up to its initialiser.
func (p *parser) variable(space string) Variable {
	v := Variable{Space: space[1:]}
	if p.accept(".align") {
		v.Align = p.alignment()
	}
	t := p.word("a type")
	element, known := Types[strings.TrimPrefix(t.text, ".")]
	if !known || element.Kind == 'p' || t.text[0] != '.' {
		p.fail(t, "a variable of type %q is not run", t.text)
	}
	v.Element, v.Align, v.Bytes = element, max(v.Align, element.Bytes()), element.Bytes()
	v.Name = p.name("the name of a variable")
	for p.accept("[") {
		if p.accept("]") {
			v.Bytes = 0
			continue
		}
		n := p.number("a number of elements", 0, maxVariable)
		p.expect("]")
		if n > 0 && v.Bytes > maxVariable/n {
			p.fail(t, "variable %s is larger than %d bytes", v.Name, maxVariable)
		}
		v.Bytes *= n
	}
	return v
}

func (p *parser) alignment() int {
	t := p.peek()
	n := p.number("an alignment", 1, 1<<16)
	if n&(n-1) != 0 {
		p.fail(t, "alignment %d is not a power of two", n)
	}
	return n
}

func (p *parser) variableOfModule(t token) {
	v := p.variable(t.text)
	if m := p.module; t.text != ".shared" {
		v.Offset = (len(m.Data) + v.Align - 1) / v.Align * v.Align
		if v.Offset+v.Bytes > maxVariable {
			p.fail(t, "the variables of the module are larger than %d bytes", maxVariable)
		}
		m.Data = append(m.Data, make([]byte, v.Offset+v.Bytes-len(m.Data))...)
		if p.accept("=") {
			p.initialise(v, m.Data[v.Offset:])
		}
	}
	p.expect(";")
	p.module.Variables[v.Name] = v
}

// initialise reads {1, 2} or 1 into a variable; omitted elements are zero.
func (p *parser) initialise(v Variable, to []byte) {
	size := v.Element.Bytes()
	if !p.accept("{") {
		p.constant(v.Element).put(to, size)
		return
	}
	for at := 0; ; at += size {
		t := p.peek()
		if at+size > v.Bytes {
			p.fail(t, "too many values for %s", v.Name)
		}
		p.constant(v.Element).put(to[at:], size)
		if !p.accept(",") {
			break
		}
	}
	p.expect("}")
}

// entry reads a kernel.
func (p *parser) entry(line int) {
	e := &Entry{Name: p.name("the name of an entry"), Line: line}
	for _, other := range p.module.Entries {
		if other.Name == e.Name {
			p.fail(p.peek(), "a second entry %s", e.Name)
		}
	}
	if p.accept("(") {
		for !p.accept(")") {
			p.param(e)
			if !p.accept(",") && p.peek().text != ")" {
				p.fail(p.peek(), "%q within parameters", p.peek().text)
			}
		}
	}
	p.tuning(e)
	p.body(e)
	p.module.Entries = append(p.module.Entries, e)
}

const maxParams = 4096

// param reads ".param .align 4 .b8 name[16]" or ".param .u64 .ptr .global .align 4 name".
func (p *parser) param(e *Entry) {
	t := p.expect(".param")
	align := 1
	if p.accept(".align") {
		align = p.alignment()
	}
	kind := p.word("a type")
	element, known := Types[strings.TrimPrefix(kind.text, ".")]
	if !known || element.Kind == 'p' {
		p.fail(kind, "a parameter of type %q is not run", kind.text)
	}
	if p.accept(".ptr") {
		for strings.HasPrefix(p.peek().text, ".") {
			if p.next().text == ".align" {
				p.alignment()
			}
		}
	}
	name := p.name("the name of a parameter")
	size := element.Bytes()
	if p.accept("[") {
		size *= p.number("a number of elements", 1, maxParams)
		p.expect("]")
	}
	align = max(align, element.Bytes())
	offset := (e.ParamBytes + align - 1) / align * align
	if offset+size > maxParams {
		p.fail(t, "more than %d bytes of parameters", maxParams)
	}
	e.Params = append(e.Params, Param{name, offset, size, align})
	e.ParamBytes = offset + size
}

// tuning reads the directives between an entry's parameters and its body.
func (p *parser) tuning(e *Entry) {
	for {
		switch t := p.peek(); t.text {
		case ".maxntid", ".reqntid":
			p.next()
			dims := [3]int{1, 1, 1}
			for i := range dims {
				if i > 0 && !p.accept(",") {
					break
				}
				dims[i] = p.number("a number of threads", 1, 1<<16)
			}
			e.MaxThreads = min(dims[0]*dims[1]*dims[2], 1<<16)
			if t.text == ".reqntid" {
				e.Required = dims
			}
		case ".minnctapersm", ".maxnreg":
			p.next()
			p.number("a number", 0, 1<<16)
		case "{":
			return
		default:
			p.fail(t, "%q is not a directive of an entry that is run", t.text)
		}
	}
}
