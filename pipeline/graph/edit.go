package graph

import (
	"fmt"
	"strings"
)

// AddPlugin returns a pipeline file with a [plugin.NAME] table that has the path and the SHA-256 given; the rest of the file
// stays as it is. A table of that name only gets the new sum, and its path must be the same. The error has file and place.
func AddPlugin(file string, src []byte, name, path, sha256 string) ([]byte, error) {
	c := newChecker(file, ParseOptions{})
	text := bom(string(src))
	root := c.read(newSource(file, text, 0))
	if root == nil {
		return nil, c.Sorted()
	}
	if !validName(name) {
		return nil, fmt.Errorf("%q cannot be a name: use letters, digits, _ and -, with a letter first", name)
	}
	table := root.at("plugin").at(name)
	if table == nil {
		return appendPlugin(text, name, path, sha256), nil
	}
	if known, ok := table.at("path").text(); ok && known != path {
		c.Add("E006", table.at("path").val, "remove it, or add the other under another name",
			"plugin %q is %s, not %s", name, known, path)
		return nil, c.Sorted()
	}
	if sum := table.at("sha256"); sum != nil {
		return []byte(text[:sum.val.off] + quote(sha256) + text[sum.val.end:]), nil
	}
	text, ok := withLine(text, table, "sha256 = "+quote(sha256))
	if !ok {
		c.Add("E005", table.key, "write it as [plugin."+name+"]", "`sha256` cannot be added to a table on one line")
		return nil, c.Sorted()
	}
	return []byte(text), nil
}

// withLine adds a line below a table's header; ok is false for a table without one.
func withLine(text string, table *node, line string) (_ string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimLeft(text[table.key.end:], " \t\"'"), "]")
	if !ok {
		return text, false
	}
	header, after, _ := strings.Cut(rest, "\n")
	return text[:len(text)-len(rest)] + header + "\n" + line + "\n" + after, true
}

// SetKeys returns a pipeline file with other values of keys, given as for --set with a blank on both sides of =; without a value the
// key is taken out. The rest of the file stays as it is. A table that it lacks comes at its end; a sha256 is replaced where there is
// one. The error has file and place.
func SetKeys(file string, src []byte, sets []string) ([]byte, error) {
	text := bom(string(src))
	for _, set := range sets {
		c := newChecker(file, ParseOptions{})
		root := c.read(newSource(file, text, 0))
		if root == nil {
			return nil, c.Sorted()
		}
		path, value, _ := strings.Cut(set, " = ")
		section, rest, _ := strings.Cut(path, ".")
		name, key, ok := strings.Cut(rest, ".")
		if !ok || strings.ContainsAny(path, "\"'") {
			return nil, fmt.Errorf("%q is no key of a table", path)
		}
		table := root.at(section).at(name)
		is := table.at(key)
		switch {
		case is != nil && value != "":
			text = text[:is.val.off] + value + text[is.val.end:]
		case is != nil:
			if text, ok = withoutLine(text, is); !ok {
				c.Add("E005", is.key, "take it out by hand", "`%s` is not on a line of its own", key)
				return nil, c.Sorted()
			}
		case value == "" || key == "sha256":
		case table == nil:
			text = strings.TrimRight(text, "\n") + "\n\n[" + section + "." + name + "]\n" + key + " = " + value + "\n"
		default:
			if text, ok = withLine(text, table, key+" = "+value); !ok {
				c.Add("E005", table.key, "write it as ["+section+"."+name+"]", "`%s` cannot be added to a table on one line", key)
				return nil, c.Sorted()
			}
		}
	}
	return []byte(text), nil
}

// withoutLine removes a key that has a whole line.
func withoutLine(text string, is *node) (_ string, ok bool) {
	start := strings.LastIndexByte(text[:is.key.off], '\n') + 1
	line, after, _ := strings.Cut(text[is.val.end:], "\n")
	if strings.TrimSpace(text[start:is.key.off]) != "" || line != "" && !strings.HasPrefix(strings.TrimSpace(line), "#") && strings.TrimSpace(line) != "" {
		return text, false
	}
	return text[:start] + after, true
}

func appendPlugin(text, name, path, sha256 string) []byte {
	var b strings.Builder
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "\n[plugin.%s]\npath = %s\nsha256 = %s\n", name, quote(path), quote(sha256))
	return []byte(b.String())
}
