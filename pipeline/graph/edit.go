package graph

import (
	"fmt"
	"strings"
)

// AddPlugin returns a pipeline file with a [plugin.NAME] table that has the path and the SHA-256 given; the rest of
// the file stays as it is. A table of that name only gets the new sum, and its path must be the same. The error
// tells file and place.
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
	header := text[:table.key.end]
	rest, isHeader := strings.CutPrefix(strings.TrimLeft(text[table.key.end:], " \t\""), "]")
	if !isHeader {
		c.Add("E005", table.key, "write it as [plugin."+name+"]", "`sha256` cannot be added to a table on one line")
		return nil, c.Sorted()
	}
	line, after, _ := strings.Cut(rest, "\n")
	header += text[table.key.end : len(text)-len(rest)]
	return []byte(header + line + "\nsha256 = " + quote(sha256) + "\n" + after), nil
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
