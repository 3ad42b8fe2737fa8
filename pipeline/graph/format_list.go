package graph

import "strings"

// listIndent is how far the items of a list are indented that is broken over lines.
const listIndent = "  "

// listItem is an item of a list or of an inline table.
type listItem struct {
	above  []string // comments in lines of their own
	text   string
	behind string // the comment in its line
}

// listReader reads the items of a list.
type listReader struct {
	*formatter
	items  []listItem
	above  []string // comments that wait for the next item
	fresh  bool     // nothing but an item, and its comma, since the start of the line
	broken bool     // over lines
}

// listText formats a list or an inline table: on one line, or with a line for each item where it has more than one line or comments.
// pad stands inside of the brackets on one line.
func (f *formatter) listText(indent, opens, closes, pad string, item func(indent string) (string, error)) (string, error) {
	f.i++
	r := listReader{formatter: f}
	for {
		f.skip(false)
		switch at := f.peek(); {
		case at == closes[0]:
			f.i++
			return r.text(indent, opens, closes, pad), nil
		case at == '\n' || at == '\r':
			f.endOfLine()
			r.broken, r.fresh = true, false
		case at == '#':
			r.note(f.comment())
		case at == ',':
			f.i++
		case at == 0:
			return "", errScan
		default:
			text, err := item(indent + listIndent)
			if err != nil {
				return "", err
			}
			r.items = append(r.items, listItem{above: r.above, text: text})
			r.above, r.fresh = nil, true
		}
	}
}

// note keeps a comment with the item that it stands behind, or else above the next one.
func (r *listReader) note(comment string) {
	r.broken = true
	if r.fresh && r.items[len(r.items)-1].behind == "" {
		r.items[len(r.items)-1].behind = comment
		return
	}
	r.above = append(r.above, comment)
}

func (r *listReader) text(indent, opens, closes, pad string) string {
	if len(r.items) == 0 && len(r.above) == 0 {
		return opens + closes
	}
	if !r.broken {
		texts := make([]string, len(r.items))
		for i, item := range r.items {
			texts[i] = item.text
		}
		return opens + pad + strings.Join(texts, ", ") + pad + closes
	}
	var b strings.Builder
	b.WriteString(opens + "\n")
	line := func(text string) { b.WriteString(indent + listIndent + text + "\n") }
	for _, item := range r.items {
		for _, comment := range item.above {
			line(comment)
		}
		text := item.text + ","
		if item.behind != "" {
			text += " " + item.behind
		}
		line(text)
	}
	for _, comment := range r.above {
		line(comment)
	}
	b.WriteString(indent + closes)
	return b.String()
}
