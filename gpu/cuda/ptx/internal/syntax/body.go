package syntax

import (
	"math"
	"strconv"
	"strings"
)

// body is an entry whose instructions are being read.
type body struct {
	*Entry
	scopes []map[string]string // names that the blocks around this place have given, innermost last, and their unique names
	unique int
}

// Imm is a number of the text.
type Imm struct {
	Bits  uint64
	float int // 32 or 64 if Bits are a float's, else 0
}

// As returns the bits of the number as a value of a type.
func (n Imm) As(t Type) uint64 {
	switch {
	case n.float == 0 && t.Kind == 'f' && t.Bits == 32:
		return uint64(math.Float32bits(float32(int64(n.Bits))))
	case n.float == 0 && t.Kind == 'f':
		return math.Float64bits(float64(int64(n.Bits)))
	case n.float == 64 && t.Kind == 'f' && t.Bits == 32:
		return uint64(math.Float32bits(float32(math.Float64frombits(n.Bits))))
	case n.float == 32 && t.Kind == 'f' && t.Bits == 64:
		return math.Float64bits(float64(math.Float32frombits(uint32(n.Bits))))
	}
	return Type{'u', t.Bits}.Extend(n.Bits)
}

func (n Imm) put(to []byte, size int) {
	for i := range size {
		to[i] = byte(n.Bits >> (8 * i))
	}
}

// constant reads a number and turns it into one of a type.
func (p *parser) constant(t Type) Imm { return Imm{Bits: p.immediate().As(t)} }

// immediate reads a number, with a sign or without.
func (p *parser) immediate() Imm {
	minus := p.accept("-")
	t := p.word("a number")
	n, ok := parseImmediate(t.text)
	if !ok {
		p.fail(t, "%q is not a number", t.text)
	}
	switch {
	case !minus:
	case n.float == 32:
		n.Bits ^= 1 << 31
	case n.float == 64:
		n.Bits ^= 1 << 63
	default:
		n.Bits = -n.Bits
	}
	return n
}

func parseImmediate(text string) (Imm, bool) {
	lower := strings.ToLower(text)
	switch {
	case strings.HasPrefix(lower, "0f") && len(lower) == 10:
		bits, err := strconv.ParseUint(lower[2:], 16, 32)
		return Imm{bits, 32}, err == nil
	case strings.HasPrefix(lower, "0d") && len(lower) == 18:
		bits, err := strconv.ParseUint(lower[2:], 16, 64)
		return Imm{bits, 64}, err == nil
	}
	if bits, err := strconv.ParseUint(strings.TrimSuffix(lower, "u"), 0, 64); err == nil {
		return Imm{bits, 0}, true
	}
	if strings.ContainsAny(lower, "_px") {
		return Imm{}, false
	}
	value, err := strconv.ParseFloat(lower, 64)
	return Imm{math.Float64bits(value), 64}, err == nil && !math.IsInf(value, 0) && !math.IsNaN(value)
}

// body reads { … } of an entry.
func (p *parser) body(e *Entry) {
	e.Labels, e.Tables, e.regs, e.Variables = map[string]int{}, map[string][]string{}, map[string]Type{}, map[string]Variable{}
	p.expect("{")
	b := &body{Entry: e, scopes: []map[string]string{{}}}
	for len(b.scopes) > 0 {
		p.statement(b)
	}
}

const maxDepth = 100

func (p *parser) statement(b *body) {
	t := p.peek()
	switch t.text {
	case "":
		p.fail(t, "an entry does not end")
	case "{":
		p.next()
		if len(b.scopes) == maxDepth {
			p.fail(t, "more than %d blocks within each other", maxDepth)
		}
		b.scopes = append(b.scopes, map[string]string{})
	case "}":
		p.next()
		b.scopes = b.scopes[:len(b.scopes)-1]
	case ";":
		p.next()
	case ".reg":
		p.next()
		p.registers(b)
	case ".shared", ".local":
		p.next()
		v := p.variable(t.text)
		p.expect(";")
		v.Name = b.give(v.Name)
		b.Variables[v.Name] = v
	case ".loc", ".file":
		p.skipLine(t.line)
	case ".pragma":
		p.next()
		p.next()
		p.expect(";")
	default:
		if p.tokens[min(p.at+1, len(p.tokens)-1)].text == ":" {
			p.label(b)
			return
		}
		p.instruction(b)
	}
}

// give remembers a name that the innermost block gives and returns one that is unique in the entry.
func (b *body) give(name string) string {
	unique := name
	if len(b.scopes) > 1 {
		b.unique++
		unique = name + "{" + strconv.Itoa(b.unique)
	}
	b.scopes[len(b.scopes)-1][name] = unique
	return unique
}

// known returns the unique name that name has in the innermost block.
func (b *body) known(name string) string {
	for i := len(b.scopes) - 1; i >= 0; i-- {
		if unique, ok := b.scopes[i][name]; ok {
			return unique
		}
	}
	return name
}

const maxRegisters = 1 << 20

// registers reads ".reg .b32 %r<100>, %x;".
func (p *parser) registers(b *body) {
	t := p.word("a type")
	kind, known := Types[strings.TrimPrefix(t.text, ".")]
	if !known || kind.Bits == 8 {
		p.fail(t, "registers of type %q are not run", t.text)
	}
	for {
		name := p.name("the name of a register")
		if p.accept("<") {
			b.ranges = append(b.ranges, regRange{name, p.number("a number of registers", 0, maxRegisters), kind})
			p.expect(">")
		} else {
			b.regs[b.give(name)] = kind
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
}

// label reads "name:" or "Name: .branchtargets a, b;".
func (p *parser) label(b *body) {
	t := p.peek()
	name := p.name("a label")
	p.expect(":")
	if !p.accept(".branchtargets") {
		if _, twice := b.Labels[name]; twice {
			p.fail(t, "a second label %s", name)
		}
		b.Labels[name] = len(b.Insts)
		return
	}
	for {
		b.Tables[name] = append(b.Tables[name], p.name("a label"))
		if !p.accept(",") {
			break
		}
	}
	p.expect(";")
}

// instruction reads "@!%p1 op.mod.mod a, b;".
func (p *parser) instruction(b *body) {
	first := p.peek()
	in := Inst{}
	if p.accept("@") {
		in.Negated = p.accept("!")
		in.Guard = b.known(p.name("a predicate"))
	}
	op := p.word("an instruction")
	if op.text[0] == '.' || op.text[0] == '%' {
		p.fail(op, "%q is not a directive that is run", op.text)
	}
	in.Line, in.Op, in.Mods = op.line, op.text, strings.Split(op.text, ".")
	for p.peek().text != ";" {
		in.Args = append(in.Args, p.operand(b, 0))
		if !p.accept(",") {
			break
		}
	}
	end := p.expect(";")
	in.Text = strings.Join(strings.Fields(p.text[first.at:end.at]), " ")
	b.Insts = append(b.Insts, in)
}

func (p *parser) operand(b *body, depth int) Operand {
	t := p.peek()
	switch {
	case t.text == "{" && depth == 0:
		return p.vector(b)
	case t.text == "[" && depth == 0:
		return p.address(b)
	case t.text == "-" || t.text != "" && t.text[0] >= '0' && t.text[0] <= '9':
		return Operand{Kind: Number, Imm: p.immediate()}
	}
	name := b.known(p.name("an operand"))
	if p.accept("|") {
		return Operand{Kind: Pair, Name: name, Pair: b.known(p.name("a predicate"))}
	}
	if _, ok := b.Register(name); ok || strings.HasPrefix(name, "%") {
		return Operand{Kind: Register, Name: name}
	}
	if name == "_" {
		return Operand{Kind: Register, Name: name}
	}
	o := Operand{Kind: Name, Name: name}
	if p.accept("+") {
		o.Off = int64(p.immediate().Bits)
	}
	return o
}

func (p *parser) vector(b *body) Operand {
	o := Operand{Kind: Vector}
	p.expect("{")
	for {
		o.List = append(o.List, p.operand(b, 1))
		if !p.accept(",") {
			break
		}
	}
	p.expect("}")
	return o
}

func (p *parser) address(b *body) Operand {
	p.expect("[")
	o := Operand{Kind: Address}
	if t := p.peek().text; t == "-" || t != "" && t[0] >= '0' && t[0] <= '9' {
		o.Off = int64(p.immediate().Bits)
	} else {
		o.Name = b.known(p.name("an address"))
		if p.accept("+") {
			o.Off = int64(p.immediate().Bits)
		} else if p.peek().text == "-" {
			o.Off = int64(p.immediate().Bits)
		}
	}
	p.expect("]")
	return o
}
