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
