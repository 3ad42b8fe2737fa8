package table

import "strings"

// Page returns the section of a text in Markdown that explains a code: what follows the code in its heading of the second
// level, up to the next such heading. ok is false if there is none. Case and blanks around the code do not matter.
func Page(pages, code string) (page string, ok bool) {
	code = strings.ToUpper(strings.TrimSpace(code))
	_, rest, ok := strings.Cut("\n"+pages, "\n## "+code+" ")
	if !ok || code == "" {
		return "", false
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return code + " " + strings.TrimSpace(body) + "\n", true
}

// Codes returns the codes that Page finds in such a text, in its order.
func Codes(pages string) []string {
	var codes []string
	for _, section := range strings.Split("\n"+pages, "\n## ")[1:] {
		code, _, _ := strings.Cut(section, " ")
		codes = append(codes, code)
	}
	return codes
}

// Summary returns the title of a page, and the first sentence after it on one line.
func Summary(page string) (title, sentence string) {
	title, body, _ := strings.Cut(page, "\n")
	paragraph, _, _ := strings.Cut(strings.TrimSpace(body), "\n\n")
	sentence = strings.Join(strings.Fields(paragraph), " ")
	if first, _, more := strings.Cut(sentence, ". "); more {
		sentence = first + "."
	}
	return title, sentence
}
