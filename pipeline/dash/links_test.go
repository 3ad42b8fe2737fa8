package dash

import (
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var hrefs = regexp.MustCompile(`href="([^"#]+)"`)

// Every address in a page leads to a page.
func TestPages_LinksLeadToPages(t *testing.T) {
	dir := t.TempDir()
	newJob(t, dir, "pole")
	newJob(t, dir, "cart")
	root := serve(t, Options{Dir: dir})
	for _, page := range []string{"?all=1", "run?run=pole/0001", "compare?run=pole/0001&run=cart/0001"} {
		code, text := get(t, root+page)
		found := hrefs.FindAllStringSubmatch(text, -1)
		if code != 200 || len(found) < 3 {
			t.Errorf("%s: %d with %d links", page, code, len(found))
		}
		from, err := url.Parse(root + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found {
			to, err := from.Parse(html.UnescapeString(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			if to.Scheme == "data" {
				continue
			}
			if code, _ := get(t, to.String()); code != 200 || to.RawQuery != "" && !strings.Contains(to.RawQuery, "=") {
				t.Errorf("%s: the link %s is answered with %d", page, m[1], code)
			}
		}
	}
}
